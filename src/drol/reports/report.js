// What is alive on a report: charts, the maze, the actions, films, copying. Its data is the JSON of the page.
"use strict";
(() => {
  const {element} = drol, data = JSON.parse(document.getElementById("data").textContent);
  const place = name => document.getElementById(name);
  if (data.groups.length > 1) drol.legend(place("legend"), data.groups);
  for (const chart of data.charts) drol.lineChart(place(chart.place), chart);

  const newest = (steps, step) => steps.reduce((best, each, index) => each <= step ? index : best, 0);
  const updates = step => `${step.toLocaleString("en")} updates`;

  function numbers(text, kind) {
    const bytes = Uint8Array.from(atob(text), letter => letter.charCodeAt(0));
    return new kind(bytes.buffer);
  }

  // A panel for each run, shown while the legend shows its group.
  function panels(where, runs, draw) {
    const row = element("div", {class: runs.length === 1 ? "panels single" : "panels"}, null, where);
    const made = runs.map(run => {
      const figure = element("figure", {}, null, row), caption = element("figcaption", {}, null, figure);
      return {run, figure, caption, svg: element("svg", {role: "img"}, null, figure)};
    });
    const show = () => made.forEach(each => { each.figure.hidden = drol.hidden.has(each.run.group); });
    document.addEventListener("groups", show);
    show();
    return () => made.forEach(draw);
  }

  // Episodes seen from above, after each evaluation.
  function mazePlayer(player) {
    const where = place(player.place), {maze} = player;
    where.classList.add("player");
    const controls = element("div", {class: "controls"}, null, where);
    let step = 0;
    const draw = panels(where, player.runs, ({run, caption, svg}) => {
      const frame = run.frames[newest(run.frames.map(each => each.step), step)];
      const drawn = frame.paths.length < frame.episodes ? `; ${frame.paths.length} of them are drawn` : "";
      caption.textContent = `${run.label}, ${updates(frame.step)}: ${frame.successes} of ${frame.episodes} arrive${drawn}`;
      svg.setAttribute("viewBox", `0 0 ${maze.width} ${maze.height}`);
      svg.setAttribute("aria-label", caption.textContent);
      svg.replaceChildren();
      for (const [x, y] of maze.walls) element("rect", {x, y, width: maze.unit, height: maze.unit, fill: "var(--wall)"}, null, svg);
      element("circle", {cx: maze.goal[0], cy: maze.goal[1], r: maze.goal[2], fill: "var(--goal)", "fill-opacity": .6}, null, svg);
      for (const outcome of ["0", "1"]) frame.paths.forEach((path, i) => {
        if (frame.arrived[i] !== outcome) return;
        const stroke = outcome === "1" ? "var(--accent)" : "var(--missed)";
        element("polyline", {points: path.join(" "), fill: "none", stroke, "stroke-width": maze.width / 300, "stroke-opacity": .6, "stroke-linejoin": "round"}, null, svg);
        element("circle", {cx: path[path.length - 2], cy: path[path.length - 1], r: maze.width / 120, fill: stroke}, null, svg);
      });
    });
    const steps = [...new Set(player.runs.flatMap(run => run.frames.map(each => each.step)))].sort((a, b) => a - b);
    drol.slider(controls, "training", steps.length, i => updates(steps[i]), i => { step = steps[i]; draw(); }, steps.length - 1, 800);
  }

  // The actions that a policy draws in a state, their cells, the data, the critic.
  function actionsPlayer(player) {
    const where = place(player.place), size = 320;
    where.classList.add("player");
    const controls = element("div", {class: "controls"}, null, where);
    const [left, right, bottom, top] = player.extent;
    const across = x => (x - left) / (right - left) * size, down = y => size - (y - bottom) / (top - bottom) * size;
    const data = numbers(player.data, Int16Array), map = player.maze ? element("svg", {role: "img", "aria-label": "where the states are"}) : null;
    for (const run of player.runs) { run.draws = numbers(run.draws, Int16Array); run.owners = run.owners && numbers(run.owners, Uint8Array); run.values = run.values && numbers(run.values, Uint8Array); }
    const ends = player.ends, at = (list, index) => [ends[0] + (ends[1] - ends[0]) * (list[index] + 32767) / 65534, ends[2] + (ends[3] - ends[2]) * (list[index + 1] + 32767) / 65534];
    let step = 0, state = 0;
    const draw = panels(where, player.runs, ({run, caption, svg}) => {
      const frame = newest(run.steps, step) * player.states.length + state;
      caption.textContent = `${run.label}, ${updates(run.steps[newest(run.steps, step)])}`;
      svg.setAttribute("viewBox", `0 0 ${size} ${size}`);
      svg.setAttribute("aria-label", `${caption.textContent}: ${run.count} actions, state ${state + 1}`);
      svg.replaceChildren();
      element("rect", {width: size, height: size, fill: "var(--ground)"}, null, svg);
      const points = Array.from({length: run.count}, (_, i) => at(run.draws, 2 * (frame * run.count + i)));
      if (run.cells) points.forEach((_, i) => element("polygon", {points: cell(points, i, player.extent).map(([x, y]) => `${across(x).toFixed(1)},${down(y).toFixed(1)}`).join(" "), fill: drol.colour(i), "fill-opacity": .1 + .07 * (Math.floor(i / 8) % 3), stroke: "var(--paper)", "stroke-width": 1.5}, null, svg));
      if (run.values) contours(svg, run.values.subarray(frame * player.grid ** 2, (frame + 1) * player.grid ** 2), player.grid, ([x, y]) => [across(ends[0] + (ends[1] - ends[0]) * x), down(ends[2] + (ends[3] - ends[2]) * y)]);
      for (let i = 0; i < player.near; i++) {
        const [x, y] = at(data, 2 * (state * player.near + i)), owner = run.owners ? run.owners[frame * player.near + i] : null;
        element("circle", {cx: across(x), cy: down(y), r: 2.2, fill: owner === null ? "var(--muted)" : drol.colour(owner), "fill-opacity": .75}, null, svg);
      }
      points.forEach(([x, y], i) => element("circle", {cx: across(x), cy: down(y), r: 5.5, fill: run.owners ? drol.colour(i) : "var(--accent)", stroke: "var(--paper)", "stroke-width": 1.8}, null, svg));
      if (player.box) element("rect", {x: across(-1), y: down(1), width: across(1) - across(-1), height: down(-1) - down(1), fill: "none", stroke: "var(--muted)", "stroke-opacity": .5}, null, svg);
    });
    const steps = [...new Set(player.runs.flatMap(run => run.steps))].sort((a, b) => a - b);
    const drawMap = () => {
      if (!map) return;
      const {maze} = player;
      map.setAttribute("viewBox", `0 0 ${maze.width} ${maze.height}`);
      map.replaceChildren();
      for (const [x, y] of maze.walls) element("rect", {x, y, width: maze.unit, height: maze.unit, fill: "var(--wall)"}, null, map);
      element("circle", {cx: maze.goal[0], cy: maze.goal[1], r: maze.goal[2], fill: "var(--goal)", "fill-opacity": .6}, null, map);
      player.states.forEach((each, index) => {
        const radius = maze.width / 24, [x, y] = each.position, here = index === state;
        const dot = element("circle", {cx: x, cy: y, r: radius, fill: here ? "var(--accent)" : "var(--ink)", stroke: "var(--paper)", "stroke-width": radius / 6}, null, map);
        const text = element("text", {x, y: y + radius * .42, "text-anchor": "middle", fill: "var(--paper)"}, String(index + 1), map);
        text.style.fontSize = `${radius * 1.15}px`;
        for (const each of [dot, text]) { each.style.cursor = "pointer"; each.addEventListener("click", () => { states.value = index; states.dispatchEvent(new Event("input")); }); }
      });
    };
    if (map) { const figure = element("figure", {}, null, where.querySelector(".panels")); element("figcaption", {}, "where the states are", figure); figure.append(map); where.querySelector(".panels").prepend(figure); where.querySelector(".panels").classList.remove("single"); }
    drol.slider(controls, "training", steps.length, i => updates(steps[i]), i => { step = steps[i]; draw(); }, steps.length - 1, 700);
    const states = drol.slider(controls, "state", player.states.length, i => player.states[i].title, i => { state = i; draw(); drawMap(); });
    states.classList.add("second");
    element("p", {class: "keys"}, "Tab to a slider, arrow keys to move it.", where);
  }

  // The cell of a point: the box of actions, cut by the line halfway to each other point.
  function cell(points, index, [left, right, bottom, top]) {
    let shape = [[left, bottom], [right, bottom], [right, top], [left, top]];
    const [px, py] = points[index];
    points.forEach(([qx, qy], other) => {
      if (other === index || (qx === px && qy === py)) return;
      const side = ([x, y]) => (x - (px + qx) / 2) * (qx - px) + (y - (py + qy) / 2) * (qy - py);
      const kept = [];
      shape.forEach((from, i) => {
        const to = shape[(i + 1) % shape.length], a = side(from), b = side(to);
        if (a <= 0) kept.push(from);
        if ((a < 0 && b > 0) || (a > 0 && b < 0)) kept.push([from[0] + (to[0] - from[0]) * a / (a - b), from[1] + (to[1] - from[1]) * a / (a - b)]);
      });
      shape = kept;
    });
    return shape;
  }

  // Lines of equal value of a grid of bytes, by marching squares; stronger where it is higher.
  function contours(svg, values, grid, place) {
    for (let level = 1; level <= 7; level++) {
      const height = 255 * level / 8;
      let path = "";
      for (let row = 0; row + 1 < grid; row++) for (let column = 0; column + 1 < grid; column++) {
        const corners = [[column, row], [column + 1, row], [column + 1, row + 1], [column, row + 1]];
        const found = [];
        corners.forEach(([x, y], i) => {
          const [u, v] = corners[(i + 1) % 4], a = values[y * grid + x] - height, b = values[v * grid + u] - height;
          if ((a < 0) !== (b < 0)) { const t = a / (a - b); found.push(place([(x + (u - x) * t) / (grid - 1), (y + (v - y) * t) / (grid - 1)])); }
        });
        for (let i = 0; i + 1 < found.length; i += 2) path += `M${found[i].map(each => each.toFixed(1))}L${found[i + 1].map(each => each.toFixed(1))}`;
      }
      if (path) element("path", {d: path, fill: "none", stroke: "var(--ink)", "stroke-opacity": .12 + .1 * level, "stroke-width": 1}, null, svg);
    }
  }

  // Episodes of which pictures were taken; all of them are cut from one image.
  function filmPlayer(player) {
    const where = place(player.place);
    where.classList.add("player");
    const controls = element("div", {class: "controls"}, null, where);
    let frame = 0;
    const draw = panels(where, player.runs, ({run, caption, svg}) => {
      const index = Math.min(frame, run.count - 1);
      caption.textContent = run.label;
      svg.setAttribute("viewBox", `0 0 ${run.width} ${run.height}`);
      svg.setAttribute("aria-label", run.label);
      const image = svg.firstChild || element("image", {href: run.image, width: run.width * run.columns, height: run.height * Math.ceil(run.count / run.columns)}, null, svg);
      image.setAttribute("x", -run.width * (index % run.columns));
      image.setAttribute("y", -run.height * Math.floor(index / run.columns));
    });
    const longest = Math.max(...player.runs.map(run => run.count));
    drol.slider(controls, "film", longest, i => `picture ${i + 1} of ${longest}`, i => { frame = i; draw(); }, 0, 120);
  }

  const kinds = {maze: mazePlayer, actions: actionsPlayer, film: filmPlayer};
  for (const player of data.players) kinds[player.kind](player);

  for (const pre of document.querySelectorAll("pre.command")) {
    const button = element("button", {type: "button", class: "copy"}, "copy");
    button.addEventListener("click", async () => {
      try { await navigator.clipboard.writeText(pre.textContent.trim()); button.textContent = "copied"; }
      catch { const range = document.createRange(); range.selectNodeContents(pre); getSelection().removeAllRanges(); getSelection().addRange(range); button.textContent = "selected"; }
    });
    pre.before(button);
  }
  const filter = place("metric-filter");
  if (filter) filter.addEventListener("input", () => {
    for (const each of document.querySelectorAll("#metrics .charts > div")) each.hidden = !each.dataset.name.includes(filter.value.trim().toLowerCase());
  });
})();
