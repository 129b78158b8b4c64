"use strict";
/* The routing lab: two panels with the same data, the same Q and the same start; what moves the points differs. */
(() => {
    const root = document.getElementById("lab");
    if (!root) return;

    const SVG = "http://www.w3.org/2000/svg";
    const EDGE = 1.12; // what is drawn beyond the box
    const POOL = 64; // latents that stand for the prior when they are drawn anew
    const START = 0.6; // the untrained actor makes START z of a latent z
    const RATE = 0.05;
    const REMEMBERED = 40; // steps: how long a latent that was drawn anew stays warm, and how long trails are
    const NEAR = 0.15; // a data action is kept if a point is so near
    const LIMITS = { data: [1, 60], hills: [1, 4] };

    const cluster = (at, radius, count, turn = 0) => Array.from({ length: count }, (_, index) => {
        const angle = turn + index * 2.399963; // the golden angle spreads points over a disc
        const length = radius * Math.sqrt((index + 0.5) / count);
        return [at[0] + length * Math.cos(angle), at[1] + length * Math.sin(angle)];
    });
    const hill = (x, y, height = 1, width = 0.45) => ({ at: [x, y], height, width });

    const SITUATIONS = {
        modes: {
            title: "Two modes",
            data: [...cluster([-0.55, 0.05], 0.3, 20), ...cluster([0.5, 0.05], 0.3, 20, 1)],
            hills: [hill(0.75, 0.45, 1, 0.5), hill(-0.55, -0.1, 0.5, 0.4)],
            settings: { candidates: 16, cloning: 1, q: 0.04 },
            look: 20,
            text: "The data has two ways to act, and Q prefers the upper right of one of them. Both panels begin with points that clone " +
                "the data. Tied, each point stops where the pull of its teacher equals the push of Q. Routed, a candidate climbs on once a " +
                "neighbour is nearer to the data that it leaves: Q rises more, the data is served as well, and both modes keep candidates. " +
                "Raise the weight of Q: routing follows it further, and gives up more of the data.",
        },
        handoff: {
            title: "Handoff",
            data: cluster([0, -0.15], 0.7, 40, 0.4),
            hills: [hill(0.1, 0.8, 1, 0.6)],
            settings: { candidates: 20, cloning: 1, q: 0.05 },
            look: 22,
            text: "Watch the ringed data action and the bold line. At first its nearest candidate serves it. Q pulls that candidate away until " +
                "a neighbour is nearer: from then on the action trains the neighbour, and the first one is free to climb. On the left the " +
                "same point stays tied to its teacher.",
        },
        averaging: {
            title: "Averaging",
            data: [...cluster([-0.6, 0], 0.2, 10), ...cluster([0.6, 0], 0.2, 10, 1)],
            hills: [hill(0.6, 0, 0.6, 0.5), hill(-0.6, 0, 0.6, 0.5)],
            settings: { candidates: 1, cloning: 3, q: 0, fresh: true, start: "untrained" },
            look: 3,
            text: "With K = 1 every latent must serve every action, so all points end in the middle, where there is no data. " +
                "Set K to 2, then to 4, and press Play: once an action can choose among candidates, the points separate and each mode gets " +
                "its own. On the left a teacher that has learned the data makes this choice, once for the whole training.",
        },
        few: {
            title: "K too small",
            data: [...cluster([-0.6, -0.4], 0.17, 8), ...cluster([0.6, -0.4], 0.17, 8, 1), ...cluster([0, 0.6], 0.17, 8, 2)],
            hills: [hill(0, 0.62, 0.6, 0.5)],
            settings: { candidates: 2, cloning: 3, q: 0.02, start: "untrained" },
            look: 14,
            text: "Three modes and two candidates: one candidate must serve two modes and stops between them, outside the support. With K = 3 " +
                "or more each mode can have one (proposition 1), if none of the candidates starts cold.",
        },
        cold: {
            title: "Cold latents",
            data: [...cluster([-0.6, 0.35], 0.2, 10), ...cluster([0.55, -0.3], 0.2, 10, 1)],
            hills: [hill(0.55, -0.3, 0.7, 0.5), hill(-0.6, 0.4, 0.7, 0.5)],
            settings: { candidates: 24, cloning: 3, q: 0.05, radius: 0.15, start: "untrained" },
            look: 2,
            text: "The prior is so narrow that all candidates start in one place. A few on the rim are nearest to all data and learn; the others " +
                "win nothing, so neither the data nor Q moves them. They are drawn hollow. A policy that draws one of them acts untrained. " +
                "Tick the box that draws latents anew and lower K to 4: now every latent gets its turn.",
        },
        outside: {
            title: "Q beyond the data",
            data: cluster([-0.35, -0.35], 0.4, 30),
            hills: [hill(0.7, 0.7, 1, 0.9)],
            settings: { candidates: 16, cloning: 1, q: 0.3 },
            look: 8,
            text: "Q is highest where the data has no action. With this weight on Q both leave the data, and routing leaves it " +
                "further, because only the actions that it wins hold a candidate. Support is kept only if cloning outweighs Q: " +
                "lower the weight of Q to 0.03 and reset.",
        },
    };
    const DEFAULTS = { candidates: 16, cloning: 1, q: 0.3, radius: Math.SQRT2, prior: "ball", fresh: false, start: "cloned" };

    const world = { seed: 1, step: 0 };
    let playing = false;

    // ---- what happens -------------------------------------------------------------------------------------------

    function load(name) {
        const situation = SITUATIONS[name];
        world.name = name;
        world.data = situation.data.map((at) => [...at]);
        world.hills = situation.hills.map((each) => ({ ...each, at: [...each.at] }));
        world.settings = { ...DEFAULTS, ...situation.settings };
        world.selected = { kind: "data", index: situation.look };
        restart();
    }

    function restart() {
        const { candidates, radius, prior, fresh } = world.settings;
        world.random = Routing.randomNumbers(world.seed);
        world.step = 0;
        const count = fresh ? POOL : candidates;
        let start = Array.from({ length: count }, () => {
            const normal = Array.from({ length: 4 }, world.random.normal);
            const latent = prior === "ball" ? Routing.inBall(normal, radius) : [0, 1].map((axis) => normal[axis] * radius / Math.SQRT2);
            return latent.map((value) => START * value);
        });
        if (world.settings.start === "cloned") start = cloned(start);
        world.tied = { points: start, trails: start.map((at) => [at]) };
        world.routed = { points: start, trails: start.map((at) => [at]), won: start.map(() => -1), handovers: world.data.map(() => 0) };
        teach();
        draw();
        world.routed.winners = route();
    }

    /* What cloning alone makes of the latents: near the actions of their teachers, then spread by routing. */
    function cloned(start) {
        const weights = { cloning: 1, q: 0 };
        const everyone = world.data.map(() => start.map((_, index) => index));
        const teachers = Routing.assignTeachers(start, world.data);
        let points = start.map((at, index) => world.data[teachers[index]].map((value, axis) => value + 0.05 * at[axis]));
        for (let step = 0; step < 60; step++) {
            const winners = Routing.route(points, world.data, everyone);
            const { gradient } = Routing.routedLoss(points, world.data, winners, world.hills, weights);
            points = Routing.descend(points, gradient, Routing.stepSize(winners, weights, 5 * RATE));
        }
        return points;
    }

    function teach() { // correspondence is fixed: what the teacher makes of a latent
        world.tied.teachers = Routing.assignTeachers(world.tied.points, world.data);
    }

    function draw() { // the latents that compete for each data action
        const { candidates, fresh } = world.settings;
        const count = world.routed.points.length;
        const everyone = Array.from({ length: count }, (_, index) => index);
        world.drawn = world.data.map(() => (fresh ? Routing.drawSome(world.random, count, candidates) : everyone));
    }

    function route() {
        const winners = Routing.route(world.routed.points, world.data, world.drawn);
        for (const winner of winners) world.routed.won[winner] = world.step;
        return winners;
    }

    function takeStep() {
        const { cloning, q, fresh } = world.settings;
        const weights = { cloning, q };
        const { tied, routed } = world;
        const everyone = tied.points.map((_, index) => index);
        const pulled = Routing.tiedLoss(tied.points, tied.teachers.map((row) => world.data[row]), world.hills, weights);
        tied.points = Routing.descend(tied.points, pulled.gradient, Routing.stepSize(everyone, weights, RATE));
        if (fresh) draw();
        const before = fresh ? null : routed.winners;
        routed.winners = route();
        const moved = Routing.routedLoss(routed.points, world.data, routed.winners, world.hills, weights);
        routed.points = Routing.descend(routed.points, moved.gradient, Routing.stepSize(routed.winners, weights, RATE));
        world.step += 1;
        routed.winners = route();
        before?.forEach((owner, row) => { if (owner !== routed.winners[row]) routed.handovers[row] += 1; });
        for (const side of [tied, routed]) {
            side.points.forEach((at, index) => {
                side.trails[index].push(at);
                if (side.trails[index].length > REMEMBERED) side.trails[index].shift();
            });
        }
    }

    function coldLatents() {
        const since = world.settings.fresh ? REMEMBERED : 0;
        return world.routed.won.map((step) => (world.settings.fresh && world.step < REMEMBERED ? false : step < world.step - since));
    }

    /* What a panel shows, in numbers. */
    function figures(side) {
        const actions = side.points.map((point) => point.map(Routing.clip));
        const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
        const gaps = world.data.map((action) => Math.sqrt(Math.min(...actions.map((point) => Routing.square(point, action)))));
        return {
            q: mean(actions.map((action) => Routing.landscape(world.hills, action).value)),
            best: Math.max(...actions.map((action) => Routing.landscape(world.hills, action).value)),
            gap: mean(gaps),
            kept: gaps.filter((gap) => gap <= NEAR).length,
        };
    }

    function describe() {
        const tied = figures(world.tied), routed = figures(world.routed);
        const cold = coldLatents().filter(Boolean).length, count = world.routed.points.length, total = world.data.length;
        const handovers = world.routed.handovers.reduce((sum, value) => sum + value, 0);
        const steps = world.step === 1 ? "1 step" : `${world.step} steps`;
        const parts = [`After ${steps}: routing has a candidate within ${NEAR} of ${routed.kept} of ${total} data actions and a mean Q of ` +
            `${routed.q.toFixed(2)}; pointwise extraction has ${tied.kept} of ${total} and ${tied.q.toFixed(2)}.`];
        parts.push(cold === 0 ? "No latent is cold." : `${cold} of ${count} latents ${cold === 1 ? "is" : "are"} cold.`);
        if (!world.settings.fresh) {
            parts.push(`Data actions changed hands ${handovers} ${handovers === 1 ? "time" : "times"}` +
                (world.selected.kind === "data" ? `, the ringed one ${world.routed.handovers[world.selected.index]}.` : "."));
        }
        return parts.join(" ");
    }

    // ---- what is shown ------------------------------------------------------------------------------------------

    const node = (name, attributes = {}, parent = null) => {
        const element = document.createElementNS(SVG, name);
        for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
        parent?.append(element);
        return element;
    };
    const html = (name, attributes = {}, ...children) => {
        const element = document.createElement(name);
        for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
        element.append(...children);
        return element;
    };
    const across = (at) => at[0].toFixed(4), down = (at) => (-at[1]).toFixed(4);
    const polygon = (corners) => corners.map((at) => `${across(at)},${down(at)}`).join(" ");

    class Panel {
        constructor(name, title, subtitle) {
            this.name = name;
            this.canvas = html("canvas", { "aria-hidden": "true" });
            this.svg = node("svg", { viewBox: `${-EDGE} ${-EDGE} ${2 * EDGE} ${2 * EDGE}`, role: "group", "aria-label": title });
            this.layers = Object.fromEntries(["cells", "box", "trails", "pulls", "handles", "points"].map((layer) =>
                [layer, node("g", { class: `lab-${layer}` }, this.svg)]));
            node("rect", { x: -1, y: -1, width: 2, height: 2 }, this.layers.box);
            this.figures = html("dl", { class: "lab-figures" });
            this.element = html("section", { class: `lab-panel lab-${name}` },
                html("h3", {}, title), html("p", { class: "lab-subtitle" }, subtitle),
                html("div", { class: "lab-board" }, this.canvas, this.svg), this.figures);
            this.handles = new Map();
        }

        get side() { return world[this.name]; }

        /* Q as shades and contours; drawn again only when a hill has moved or the size changed. */
        paint() {
            const size = Math.round(this.canvas.clientWidth * (window.devicePixelRatio || 1));
            const colour = getComputedStyle(root).getPropertyValue("--lab-hill").trim();
            const key = JSON.stringify([world.hills, size, colour]);
            if (key === this.painted || size === 0) return;
            this.painted = key;
            this.canvas.width = this.canvas.height = size;
            const context = this.canvas.getContext("2d");
            const grid = 72;
            const at = (index) => EDGE * (2 * index / grid - 1);
            const values = Array.from({ length: grid + 1 }, (_, row) => Array.from({ length: grid + 1 }, (_, column) =>
                Routing.landscape(world.hills, [at(column), -at(row)]).value));
            const highest = Math.max(...values.flat(), 1e-9), cell = size / grid;
            context.strokeStyle = colour; // the browser gives it back as #rrggbb
            const [red, green, blue] = context.strokeStyle.match(/[0-9a-f]{2}/gi).map((digits) => parseInt(digits, 16));
            const shades = new ImageData(grid + 1, grid + 1);
            values.flat().forEach((value, place) => {
                shades.data.set([red, green, blue, 130 * Math.max(0, value / highest) ** 1.4], 4 * place);
            });
            const small = html("canvas", { width: grid + 1, height: grid + 1 });
            small.getContext("2d").putImageData(shades, 0, 0);
            context.drawImage(small, 0.5, 0.5, grid, grid, 0, 0, size, size);
            context.globalAlpha = 0.55;
            context.lineWidth = Math.max(1, size / 600);
            for (let level = 1; level < 9; level++) contour(context, values, highest * level / 9, cell);
        }

        draw() {
            this.paint();
            const { points, trails } = this.side;
            const routed = this.name === "routed";
            const cold = routed ? coldLatents() : points.map(() => false);
            const shown = points.map((point) => point.map(Routing.clip));
            this.layers.trails.replaceChildren(...trails.map((trail) =>
                node("polyline", { points: polygon(trail.map((at) => at.map(Routing.clip))) })));
            this.layers.points.replaceChildren(...shown.map((at, index) =>
                node("circle", { cx: across(at), cy: down(at), r: 0.021, class: cold[index] ? "lab-cold" : "lab-warm" })));
            if (routed) this.drawRouting(shown); else this.drawTies(shown);
            this.drawHandles();
            const { q, gap, kept } = figures(this.side);
            const rows = [
                ["mean Q of the points", q.toFixed(2)],
                ["from data to the nearest point", gap.toFixed(3)],
                [`data actions kept (within ${NEAR})`, `${kept} of ${world.data.length}`],
            ];
            if (routed) rows.push(["cold latents", `${cold.filter(Boolean).length} of ${points.length}`]);
            else rows.push(["teachers that ever change", "0"]);
            this.figures.replaceChildren(...rows.flatMap(([name, value]) => [html("dt", {}, name), html("dd", {}, value)]));
        }

        drawRouting(shown) {
            const { winners } = this.side;
            const chosen = world.selected.kind === "data" ? world.selected.index : 0;
            const drawn = world.drawn[chosen];
            const owner = winners[chosen];
            const polygons = Routing.cells(drawn.map((index) => shown[index]), 1);
            this.layers.cells.replaceChildren(...polygons.map((corners, place) => node("polygon", {
                points: polygon(corners), class: drawn[place] === owner ? "lab-owner-cell" : "",
            })));
            this.layers.pulls.replaceChildren(...winners.map((winner, row) => line(world.data[row], shown[winner], row === chosen)));
        }

        drawTies(shown) {
            const chosen = world.selected.kind === "data" ? world.selected.index : -1;
            this.layers.pulls.replaceChildren(...this.side.teachers.map((row, index) => line(world.data[row], shown[index], row === chosen)));
        }

        /* Data actions and hills are kept from one drawing to the next, so that the keyboard's focus stays on them. */
        drawHandles() {
            const wanted = [
                ...world.hills.map((each, index) => ["hills", index, each.at, `hill ${index + 1}`]),
                ...world.data.map((at, index) => ["data", index, at, `data action ${index + 1}`]),
            ];
            const keys = new Set();
            for (const [kind, index, at, label] of wanted) {
                const key = `${kind} ${index}`;
                keys.add(key);
                if (!this.handles.has(key)) this.handles.set(key, this.handle(kind, index));
                const handle = this.handles.get(key);
                handle.setAttribute("transform", `translate(${across(at)} ${down(at)})`);
                handle.setAttribute("aria-label", `${label} at ${at[0].toFixed(2)}, ${at[1].toFixed(2)}`);
                handle.classList.toggle("lab-chosen", world.selected.kind === kind && world.selected.index === index);
            }
            for (const [key, handle] of this.handles) {
                if (!keys.has(key)) { handle.remove(); this.handles.delete(key); }
            }
        }

        handle(kind, index) {
            const group = node("g", { class: `lab-handle lab-handle-${kind}`, tabindex: "0", role: "button", "data-kind": kind, "data-index": index });
            node("circle", { r: 0.07, class: "lab-grip" }, group);
            if (kind === "hills") node("path", { d: "M0 -0.06 L0.055 0.045 L-0.055 0.045 Z" }, group);
            else node("circle", { r: 0.026, class: "lab-datum" }, group);
            this.layers.handles[kind === "hills" ? "prepend" : "append"](group);
            group.addEventListener("focus", () => choose(kind, index));
            group.addEventListener("pointerdown", (event) => {
                event.preventDefault();
                group.focus({ preventScroll: true });
                choose(kind, index);
                group.setPointerCapture(event.pointerId);
                const follow = (moving) => move(kind, index, this.place(moving));
                group.addEventListener("pointermove", follow);
                const leave = () => group.removeEventListener("pointermove", follow);
                group.addEventListener("pointerup", leave, { once: true });
                group.addEventListener("pointercancel", leave, { once: true });
            });
            group.addEventListener("keydown", (event) => {
                const ways = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
                const way = ways[event.key], length = event.shiftKey ? 0.1 : 0.02;
                if (way) {
                    const { at } = kind === "hills" ? world.hills[index] : { at: world.data[index] };
                    move(kind, index, [at[0] + length * way[0], at[1] + length * way[1]]);
                } else if (event.key === "Delete" || event.key === "Backspace") removeChosen();
                else return;
                event.preventDefault();
            });
            return group;
        }

        place(event) {
            const { left, top, width } = this.svg.getBoundingClientRect();
            return [EDGE * (2 * (event.clientX - left) / width - 1), -EDGE * (2 * (event.clientY - top) / width - 1)];
        }
    }

    const line = (from, to, chosen) => node("line", {
        x1: across(from), y1: down(from), x2: across(to), y2: down(to), class: chosen ? "lab-chosen" : "",
    });

    /* The line on which a grid of values has a level, by marching squares. */
    function contour(context, values, level, cell) {
        context.beginPath();
        for (let row = 0; row + 1 < values.length; row++) {
            for (let column = 0; column + 1 < values.length; column++) {
                const corners = [[row, column], [row, column + 1], [row + 1, column + 1], [row + 1, column]];
                const crossed = [];
                corners.forEach(([y, x], index) => {
                    const [next, over] = corners[(index + 1) % 4];
                    const [a, b] = [values[y][x] - level, values[next][over] - level];
                    if (a < 0 !== b < 0) crossed.push([x + (over - x) * a / (a - b), y + (next - y) * a / (a - b)]);
                });
                for (let index = 0; index + 1 < crossed.length; index += 2) {
                    context.moveTo(crossed[index][0] * cell, crossed[index][1] * cell);
                    context.lineTo(crossed[index + 1][0] * cell, crossed[index + 1][1] * cell);
                }
            }
        }
        context.stroke();
    }

    // ---- what the reader does -----------------------------------------------------------------------------------

    function choose(kind, index) {
        world.selected = { kind, index };
        show();
    }

    function move(kind, index, at) {
        const place = at.map((value) => Math.min(Math.max(value, -0.99), 0.99));
        if (kind === "hills") world.hills[index].at = place;
        else world.data[index] = place;
        reroute();
    }

    function reroute() {
        world.routed.winners = route();
        show();
    }

    function change(kind, edit) { // add or remove; the teachers are dealt anew, and owners counted anew
        const [least, most] = LIMITS[kind];
        const list = [...world[kind]];
        edit(list);
        if (list.length < least || list.length > most) return;
        world[kind] = list;
        world.selected = { kind, index: Math.min(world.selected.index, list.length - 1) };
        if (kind === "data") {
            world.routed.handovers = list.map(() => 0);
            teach();
            draw();
        }
        reroute();
    }

    const addData = () => change("data", (list) => {
        const [x, y] = list.at(-1);
        list.push([Routing.clip(x * 0.8 + 0.1), Routing.clip(y * 0.8 - 0.1)]);
        world.selected.index = list.length - 1;
    });
    const addHill = () => change("hills", (list) => {
        list.push(hill(-0.7 + 0.45 * list.length, -0.7));
        world.selected.index = list.length - 1;
    });
    const removeChosen = () => change(world.selected.kind, (list) => list.splice(world.selected.index, 1));

    function play(on) {
        playing = on;
        buttons.play.textContent = on ? "Pause" : "Play";
        buttons.play.setAttribute("aria-pressed", String(on));
        if (on) requestAnimationFrame(frame);
    }

    let last = 0, owed = 0;
    function frame(now) {
        if (!playing) return;
        owed = Math.min(owed + (last ? (now - last) / 1000 : 0) * speed, 8);
        last = now;
        const due = Math.floor(owed);
        owed -= due;
        for (let count = 0; count < due; count++) takeStep();
        if (due) show();
        requestAnimationFrame(frame);
    }

    // ---- the page -----------------------------------------------------------------------------------------------

    let speed = 20;
    const panels = [
        new Panel("tied", "Pointwise extraction", "each point is tied to the action that its teacher makes of the same latent"),
        new Panel("routed", "Routing", "each data action trains the nearest of its K candidates"),
    ];
    const buttons = {}, sliders = {};
    const sentence = html("p", { class: "lab-sentence", role: "status", "aria-live": "polite" });
    const lesson = html("p", { class: "lab-lesson" });
    const situations = html("div", { class: "lab-situations", role: "group", "aria-label": "situations" });

    function button(name, label, act, parent, title = "") {
        const element = html("button", { type: "button", title, "data-action": name }, label);
        element.addEventListener("click", act);
        buttons[name] = element;
        parent.append(element);
    }

    /* A slider writes a setting; `reads` and `writes` go from its position to the value and back. */
    function slider(name, label, range, { writes = Number, reads = (value) => value, words = String, then = restart }, parent) {
        const input = html("input", { type: "range", id: `lab-${name}`, ...range });
        const output = html("output", { for: input.id });
        input.addEventListener("input", () => {
            world.settings[name] = writes(input.value);
            then();
            show();
        });
        sliders[name] = () => {
            input.value = reads(world.settings[name]);
            output.textContent = words(world.settings[name]);
        };
        parent.append(html("label", { for: input.id }, label), input, output);
    }

    const logarithm = {
        writes: (position) => 10 ** Number(position),
        reads: (value) => Math.log10(value),
        words: (value) => value.toPrecision(2),
        then: () => {},
    };

    const cube = { // fine near 0, where routing and data are in balance
        writes: (position) => 2 * Number(position) ** 3,
        reads: (value) => Math.cbrt(value / 2),
        words: (value) => value.toFixed(value < 0.1 ? 3 : 2),
        then: () => {},
    };

    function build() {
        for (const [name, { title }] of Object.entries(SITUATIONS)) {
            const element = html("button", { type: "button", "data-situation": name }, title);
            element.addEventListener("click", () => { play(false); load(name); show(); });
            situations.append(element);
        }
        const actions = html("div", { class: "lab-actions" });
        button("play", "Play", () => { last = 0; play(!playing); }, actions);
        button("step", "Step", () => { takeStep(); show(); }, actions, "one gradient step of both losses");
        button("reset", "Reset", () => { restart(); show(); }, actions, "start again with the same latents");
        button("draw", "New latents", () => { world.seed += 1; restart(); show(); }, actions, "start again with other latents");
        button("data", "Add data action", addData, actions);
        button("hill", "Add hill", addHill, actions);
        button("remove", "Remove chosen", removeChosen, actions, "the ringed data action or hill; or press Delete on it");

        const settings = html("div", { class: "lab-settings" });
        slider("candidates", "K, candidates", { min: 1, max: 48, step: 1 }, {}, settings);
        slider("cloning", "weight of cloning", { min: -1.5, max: 1, step: 0.05 }, logarithm, settings);
        slider("q", "weight of Q", { min: 0, max: 1, step: 0.01 }, cube, settings);
        slider("radius", "radius of the prior", { min: 0.1, max: 2, step: 0.01 }, { words: (value) => value.toFixed(2) }, settings);
        const pace = html("input", { type: "range", id: "lab-speed", min: 1, max: 60, step: 1, value: speed });
        pace.addEventListener("input", () => { speed = Number(pace.value); show(); });
        const paceWords = html("output", { for: "lab-speed" });
        sliders.speed = () => { paceWords.textContent = `${speed} / s`; };
        settings.append(html("label", { for: "lab-speed" }, "steps"), pace, paceWords);

        const prior = html("select", { id: "lab-prior" }, html("option", { value: "ball" }, "uniform in a ball"), html("option", { value: "normal" }, "normal"));
        prior.addEventListener("change", () => { world.settings.prior = prior.value; restart(); show(); });
        const fresh = html("input", { type: "checkbox", id: "lab-fresh" });
        fresh.addEventListener("change", () => { world.settings.fresh = fresh.checked; restart(); show(); });
        const start = html("select", { id: "lab-start" }, html("option", { value: "cloned" }, "the data, cloned"), html("option", { value: "untrained" }, "the prior, untrained"));
        start.addEventListener("change", () => { world.settings.start = start.value; restart(); show(); });
        sliders.choices = () => {
            prior.value = world.settings.prior;
            start.value = world.settings.start;
            fresh.checked = world.settings.fresh;
        };
        const choices = html("div", { class: "lab-choices" },
            html("label", { for: "lab-start" }, "start from"), start,
            html("label", { for: "lab-prior" }, "prior"), prior,
            html("label", { for: "lab-fresh" }, fresh, ` draw K of ${POOL} latents anew for each action and step, as in training`));

        root.replaceChildren(situations, lesson, html("div", { class: "lab-panels" }, ...panels.map((panel) => panel.element)),
            sentence, actions, settings, choices);
    }

    function show() {
        for (const panel of panels) panel.draw();
        for (const update of Object.values(sliders)) update();
        for (const element of situations.children) element.setAttribute("aria-pressed", String(element.dataset.situation === world.name));
        buttons.remove.disabled = world[world.selected.kind].length <= LIMITS[world.selected.kind][0];
        buttons.data.disabled = world.data.length >= LIMITS.data[1];
        buttons.hill.disabled = world.hills.length >= LIMITS.hills[1];
        lesson.textContent = SITUATIONS[world.name].text;
        sentence.textContent = describe();
        root.dataset.step = world.step;
    }

    build();
    load("modes");
    show();
    new ResizeObserver(show).observe(root);
    new MutationObserver(show).observe(document.body, { attributes: true, attributeFilter: ["data-md-color-scheme"] });
    window.routingLab = { world, load, restart, takeStep, show, figures, coldLatents };
})();
