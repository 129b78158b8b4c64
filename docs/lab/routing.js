"use strict";
/* The numbers of the routing lab: actions are [x, y] in the box [-1, 1]^2, points are what an actor makes of its
 * latents at one state. Every function here gives what the library gives; tests/website/test_lab.py compares them on the
 * same numbers with DROL.route, DROL.actor_loss, FQL.actor_loss, candidate_diagnostics and uniform_in_ball. */
const Routing = (() => {
    const SIZE = 2; // d_a, the size of an action
    const LONGEST_STEP = 0.08; // no point moves further in one step

    const clip = (value) => Math.min(Math.max(value, -1), 1);
    const inside = (value) => (value > -1 && value < 1 ? 1 : 0); // the slope of the clip
    const square = (a, b) => (a[0] - b[0]) ** 2 + (a[1] - b[1]) ** 2;

    /* Q and its slope at an action: a sum of hills {at, height, width}. */
    function landscape(hills, action) {
        let value = 0, slopeX = 0, slopeY = 0;
        for (const { at, height, width } of hills) {
            const part = height * Math.exp(-square(action, at) / (2 * width * width));
            value += part;
            slopeX -= part * (action[0] - at[0]) / (width * width);
            slopeY -= part * (action[1] - at[1]) / (width * width);
        }
        return { value, slope: [slopeX, slopeY] };
    }

    /* The candidate nearest to an action, of those that were drawn; the first of several that are equally near. */
    function nearest(points, action, drawn) {
        let winner = -1, least = Infinity;
        for (const index of drawn) {
            const distance = square(points[index].map(clip), action);
            if (distance < least) [winner, least] = [index, distance];
        }
        return winner;
    }

    /* The winner of each data action among the latents that were drawn for it. */
    function route(points, actions, drawn) {
        return actions.map((action, row) => nearest(points, action, drawn[row]));
    }

    const scaleOfQ = (values) => 1 / Math.max(values.reduce((sum, q) => sum + Math.abs(q), 0) / values.length, 1e-6);

    /* Routing: loss and gradient [point] of bc_weight |c - a|^2 / d_a - q_weight Q(c) / E|Q|, c the winner, clipped. */
    function routedLoss(points, actions, winners, hills, weights) {
        const rows = winners.map((winner) => points[winner].map(clip));
        return pull(points, rows, actions, winners, hills, weights, (point, axis) => inside(point[axis]), rows);
    }

    /* Pointwise extraction: every point has a teacher of its own; Q sees the clipped point, the pull the point itself. */
    function tiedLoss(points, teachers, hills, weights) {
        const owners = points.map((_, index) => index);
        return pull(points, points, teachers, owners, hills, weights, () => 1, points.map((point) => point.map(clip)));
    }

    function pull(points, rows, targets, owners, hills, { cloning, q }, slopeOfPull, valued) {
        const count = targets.length;
        const values = valued.map((action) => landscape(hills, action));
        const scale = scaleOfQ(values.map((each) => each.value));
        const gradient = points.map(() => [0, 0]);
        let loss = 0;
        for (let row = 0; row < count; row++) {
            const owner = owners[row];
            loss += cloning * square(rows[row], targets[row]) / SIZE - q * scale * values[row].value;
            for (const axis of [0, 1]) {
                const towards = cloning * 2 * (rows[row][axis] - targets[row][axis]) / SIZE;
                const climb = q * scale * values[row].slope[axis] * inside(points[owner][axis]);
                gradient[owner][axis] += (towards * slopeOfPull(points[owner], axis) - climb) / count;
            }
        }
        return { loss: loss / count, gradient };
    }

    /* How far a step goes: `rate` over the curvature of cloning and Q for the point that most rows train. */
    function stepSize(owners, { cloning, q }, rate) {
        const owned = new Map();
        for (const owner of owners) owned.set(owner, (owned.get(owner) ?? 0) + 1);
        return rate * owners.length / (Math.max(...owned.values()) * Math.max(cloning + q, 1e-3));
    }

    function descend(points, gradient, size) {
        return points.map((point, index) => {
            const step = gradient[index].map((slope) => -size * slope);
            const length = Math.hypot(...step);
            const factor = length > LONGEST_STEP ? LONGEST_STEP / length : 1;
            return [point[0] + factor * step[0], point[1] + factor * step[1]];
        });
    }

    /* A latent of the bounded prior from four normal numbers: two coordinates of a point of the sphere in 2 + 2. */
    function inBall(normal, radius) {
        const length = Math.hypot(...normal);
        return [radius * normal[0] / length, radius * normal[1] / length];
    }

    /* What DROL's diagnostics say of clipped candidates that all compete for every action. */
    function diagnostics(points, actions) {
        const candidates = points.map((point) => point.map(clip));
        const count = candidates.length;
        const everyone = candidates.map((_, index) => index);
        const winners = route(candidates, actions, actions.map(() => everyone));
        const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
        const centre = [0, 1].map((axis) => mean(candidates.map((candidate) => candidate[axis])));
        const divergence = mean(candidates.map((candidate) => square(candidate, centre) / SIZE));
        const shares = everyone.map((index) => winners.filter((winner) => winner === index).length / winners.length);
        return {
            routed_bc_loss: mean(actions.map((action, row) => square(candidates[winners[row]], action) / SIZE)),
            candidate_divergence: divergence,
            candidate_distance: Math.sqrt(count > 1 ? 2 * count / (count - 1) * divergence : 0),
            winner_entropy: -shares.reduce((sum, share) => sum + (share > 0 ? share * Math.log(share) : 0), 0),
            winner_largest_share: Math.max(...shares),
        };
    }

    /* The cells of points inside a square, each a polygon: what is left of the square when every bisector has cut it. */
    function cells(points, edge) {
        const corners = [[-edge, -edge], [edge, -edge], [edge, edge], [-edge, edge]];
        return points.map((point, index) => {
            let polygon = corners;
            points.forEach((other, rival) => {
                if (rival === index || polygon.length === 0) return;
                if (square(point, other) === 0) { if (rival < index) polygon = []; return; }
                const normal = [other[0] - point[0], other[1] - point[1]];
                const limit = (other[0] ** 2 + other[1] ** 2 - point[0] ** 2 - point[1] ** 2) / 2;
                polygon = cut(polygon, (at) => normal[0] * at[0] + normal[1] * at[1] - limit);
            });
            return polygon;
        });
    }

    function cut(polygon, side) {
        const kept = [];
        polygon.forEach((here, index) => {
            const next = polygon[(index + 1) % polygon.length];
            const [a, b] = [side(here), side(next)];
            if (a <= 0) kept.push(here);
            if (a * b < 0) kept.push([0, 1].map((axis) => here[axis] + (next[axis] - here[axis]) * a / (a - b)));
        });
        return kept;
    }

    /* A teacher for every point: near pairs first, and no data action teaches more points than its share. */
    function assignTeachers(points, actions) {
        const room = actions.map(() => Math.ceil(points.length / actions.length));
        const teachers = points.map(() => -1);
        const pairs = points.flatMap((point, index) => actions.map((action, row) => [square(point, action), index, row]));
        pairs.sort((a, b) => a[0] - b[0] || a[1] - b[1] || a[2] - b[2]);
        for (const [, index, row] of pairs) {
            if (teachers[index] < 0 && room[row] > 0) {
                teachers[index] = row;
                room[row] -= 1;
            }
        }
        return teachers;
    }

    /* Uniform numbers from a seed, and normal ones made of them. */
    function randomNumbers(seed) {
        let state = seed >>> 0;
        const uniform = () => {
            state = (state + 0x9e3779b9) >>> 0;
            let mixed = Math.imul(state ^ (state >>> 16), 0x85ebca6b);
            mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
            return ((mixed ^ (mixed >>> 16)) >>> 0) / 4294967296;
        };
        const normal = () => Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform());
        return { uniform, normal };
    }

    /* K different numbers below `count`. */
    function drawSome(random, count, some) {
        const all = Array.from({ length: count }, (_, index) => index);
        for (let index = 0; index < some; index++) {
            const other = index + Math.floor(random.uniform() * (count - index));
            [all[index], all[other]] = [all[other], all[index]];
        }
        return all.slice(0, some);
    }

    return {
        clip, square, landscape, nearest, route, routedLoss, tiedLoss, stepSize, descend, inBall, diagnostics, cells,
        assignTeachers, randomNumbers, drawSome,
    };
})();
if (typeof module !== "undefined") module.exports = Routing;
