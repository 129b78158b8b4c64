// Charts, legends and players of our pages: plain SVG that follows the colours of the page. Text is only ever set as text.
"use strict";
const drol = (() => {
  const colours = 8, dashes = ["", "7 4", "2 3", "8 3 2 3"];
  const hidden = new Set();       // numbers of the groups that the legend hides
  const drawn = new Set();        // charts, drawn again when the legend or their width changes

  function element(name, attributes = {}, text = null, parent = null) {
    const svg = ["svg", "g", "path", "line", "text", "circle", "polyline", "polygon", "rect", "image", "clipPath"].includes(name);
    const made = svg ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) if (value !== null && value !== undefined) made.setAttribute(key, value);
    if (text !== null) made.textContent = text;
    if (parent) parent.append(made);
    return made;
  }
  const colour = group => group < 0 ? "var(--ink)" : `var(--s${group % colours})`;
  const dash = group => group < 0 ? null : dashes[Math.floor(group / colours) % dashes.length] || null;
  const known = value => typeof value === "number" && Number.isFinite(value);

  function number(value) {
    if (!known(value)) return "none";
    const size = Math.abs(value);
    if (size >= 1e6) return `${+(value / 1e6).toPrecision(3)}M`;
    if (size >= 1e4) return `${+(value / 1e3).toPrecision(3)}k`;
    return size !== 0 && size < 1e-3 ? value.toExponential(1) : String(+value.toPrecision(4));
  }

  function ticks(low, high, most) {
    const rough = (high - low) / most, power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map(each => each * power).find(each => each >= rough * 0.999) || power;
    const found = [];
    for (let value = Math.ceil(low / step - 1e-9) * step; value <= high + step * 1e-6; value += step) found.push(Math.abs(value) < step * 1e-9 ? 0 : value);
    return found;
  }

  function range(series, percent) {
    let low = Infinity, high = -Infinity;
    for (const one of series) for (const list of [one.y, one.low, one.high]) for (const value of list || []) if (known(value)) { low = Math.min(low, value); high = Math.max(high, value); }
    if (percent) return [0, 100];
    if (low > high) return null;
    if (low >= 0 && low < high / 2) low = 0;
    if (low === high) { const half = Math.abs(low) / 10 || 1; return [low - half, high + half]; }
    return [low === 0 ? 0 : low - 0.06 * (high - low), high + 0.06 * (high - low)];
  }

  // A chart of lines with bands. spec: {title, percent, height, unit, series: [{group, label, x, y, low, high, thin, dashed}]}
  function lineChart(place, spec) {
    place.classList.add("chart");
    place.tabIndex = 0;
    place.setAttribute("role", "img");
    const chart = {place, spec, at: null};
    chart.draw = () => drawLines(chart);
    place.addEventListener("pointermove", event => { chart.at = nearest(chart, event.clientX - place.getBoundingClientRect().left); point(chart); });
    place.addEventListener("pointerleave", () => { chart.at = null; point(chart); });
    place.addEventListener("blur", () => { chart.at = null; point(chart); });
    place.addEventListener("keydown", event => {
      const step = {ArrowLeft: -1, ArrowRight: 1}[event.key];
      if (event.key === "Escape") chart.at = null;
      else if (step && chart.xs.length) {
        const here = chart.at === null ? (step > 0 ? -1 : chart.xs.length) : chart.xs.indexOf(chart.at);
        chart.at = chart.xs[Math.max(0, Math.min(chart.xs.length - 1, here + step))];
        event.preventDefault();
      } else return;
      point(chart);
    });
    drawn.add(chart);
    watchWidth.observe(place);
    chart.draw();
    return chart;
  }

  const watchWidth = new ResizeObserver(entries => {
    for (const entry of entries) for (const chart of drawn) if (chart.place === entry.target && chart.width !== entry.contentRect.width) chart.draw();
  });

  function forget(chart) { drawn.delete(chart); watchWidth.unobserve(chart.place); }

  function drawLines(chart) {
    const {place, spec} = chart;
    const width = chart.width = place.clientWidth || 320, height = spec.height || 190;
    const series = spec.series.filter(one => !hidden.has(one.group));
    place.setAttribute("aria-label", `${spec.title}: ${series.length} lines; arrow keys read them`);
    const edge = {left: 46, right: 12, top: 8, bottom: 24};
    const svg = element("svg", {viewBox: `0 0 ${width} ${height}`, height, "aria-hidden": "true"});
    const xs = chart.xs = [...new Set(series.flatMap(one => one.x))].sort((a, b) => a - b);
    const bounds = range(series, spec.percent);
    place.replaceChildren(svg);
    chart.tip = element("div", {class: "tip", role: "status", hidden: ""}, null, place);
    if (!bounds || !xs.length) { element("text", {x: width / 2, y: height / 2, class: "none"}, "nothing yet", svg); chart.scale = null; return; }
    const first = Math.min(spec.from ?? Infinity, xs[0]), last = Math.max(spec.to ?? -Infinity, xs[xs.length - 1]);
    const across = value => edge.left + (last > first ? (value - first) / (last - first) : 0.5) * (width - edge.left - edge.right);
    const up = value => height - edge.bottom - (value - bounds[0]) / (bounds[1] - bounds[0]) * (height - edge.top - edge.bottom);
    chart.scale = {across, up, edge, height};
    for (const value of ticks(bounds[0], bounds[1], 4)) {
      element("line", {x1: edge.left, x2: width - edge.right, y1: up(value), y2: up(value), class: "grid"}, null, svg);
      element("text", {x: edge.left - 6, y: up(value) + 4, "text-anchor": "end"}, number(value), svg);
    }
    const many = last > first ? ticks(first, last, Math.max(2, Math.floor(width / 90))) : [first];
    many.forEach((value, index) => element("text", {x: across(value), y: height - 6, "text-anchor": index === many.length - 1 && across(value) > width - 30 ? "end" : "middle"}, number(value), svg));
    element("line", {x1: edge.left, x2: width - edge.right, y1: height - edge.bottom, y2: height - edge.bottom, class: "axis"}, null, svg);
    for (const one of series) if (one.low) {
      const rows = one.x.map((x, i) => [x, one.low[i], one.high[i]]).filter(row => known(row[1]) && known(row[2]));
      if (rows.length > 1) element("path", {class: "band", fill: colour(one.group), d: `M${rows.map(row => `${across(row[0])},${up(row[1])}`).join("L")}L${rows.reverse().map(row => `${across(row[0])},${up(row[2])}`).join("L")}Z`}, null, svg);
      else for (const row of rows) element("line", {x1: across(row[0]), x2: across(row[0]), y1: up(row[1]), y2: up(row[2]), stroke: colour(one.group), "stroke-opacity": .35, "stroke-width": 5}, null, svg);
    }
    for (const one of [...series].sort((a, b) => (b.thin ? 1 : 0) - (a.thin ? 1 : 0))) {
      let path = "", open = false;
      one.x.forEach((x, i) => { if (known(one.y[i])) { path += `${open ? "L" : "M"}${across(x).toFixed(1)},${up(one.y[i]).toFixed(1)}`; open = true; } else open = false; });
      const look = {class: one.thin ? "line thin" : "line", stroke: colour(one.group), "stroke-dasharray": one.dashed ? "5 4" : dash(one.group)};
      if (path) element("path", {...look, d: path}, null, svg);
      if (!one.thin && one.x.length <= 40) one.x.forEach((x, i) => { if (known(one.y[i])) element("circle", {cx: across(x), cy: up(one.y[i]), r: one.x.length === 1 ? 3.5 : 2.4, fill: colour(one.group)}, null, svg); });
    }
    chart.mark = element("line", {class: "cross", y1: edge.top, y2: height - edge.bottom, visibility: "hidden"}, null, svg);
    if (chart.at !== null) point(chart);
  }

  function nearest(chart, left) {
    if (!chart.scale || !chart.xs.length) return null;
    return chart.xs.reduce((best, x) => Math.abs(chart.scale.across(x) - left) < Math.abs(chart.scale.across(best) - left) ? x : best);
  }

  function point(chart) {
    const {at, tip, mark, scale, spec} = chart;
    if (!scale || at === null) { tip.hidden = true; if (mark) mark.setAttribute("visibility", "hidden"); return; }
    mark.setAttribute("visibility", "visible");
    mark.setAttribute("x1", scale.across(at)); mark.setAttribute("x2", scale.across(at));
    tip.replaceChildren(element("div", {}, `${at.toLocaleString("en")} updates`));
    const rows = spec.series.filter(one => !hidden.has(one.group)).map(one => [one, one.x.indexOf(at)]).filter(([one, i]) => i >= 0 && known(one.y[i]));
    rows.sort((a, b) => (a[0].thin ? 1 : 0) - (b[0].thin ? 1 : 0) || b[0].y[b[1]] - a[0].y[a[1]]);
    for (const [one, i] of rows.slice(0, 12)) {
      const row = element("div", {}, null, tip);
      element("i", {}, null, row).style.background = colour(one.group);
      element("span", {}, one.label, row);
      const spread = one.low && known(one.low[i]) && known(one.high[i]) ? ` (${number(one.low[i])} to ${number(one.high[i])})` : "";
      element("b", {}, number(one.y[i]) + spread, row);
    }
    if (rows.length > 12) element("div", {}, `and ${rows.length - 12} more`, tip);
    tip.hidden = false;
    const right = scale.across(at) > chart.width / 2;
    tip.style.left = right ? "" : `${scale.across(at) + 10}px`;
    tip.style.right = right ? `${chart.width - scale.across(at) + 10}px` : "";
  }

  // One legend for all charts of a page: a click hides or shows a group, with Shift only that group is left.
  function legend(place, groups) {
    place.classList.add("legend");
    place.setAttribute("role", "group");
    place.setAttribute("aria-label", "groups");
    const buttons = groups.map((group, index) => {
      const button = element("button", {type: "button", "aria-pressed": "true", title: `${group.label}\nClick: hide or show. Shift and click: this one alone.`}, null, place);
      const key = element("svg", {viewBox: "0 0 22 8", width: 22, height: 8, "aria-hidden": "true"}, null, button);
      element("line", {x1: 1, x2: 21, y1: 4, y2: 4, stroke: colour(group.colour ?? index), "stroke-width": 3, "stroke-dasharray": dash(group.colour ?? index), "stroke-linecap": "round"}, null, key);
      element("span", {}, group.label, button);
      button.addEventListener("click", event => {
        const own = group.colour ?? index, all = groups.map((each, i) => each.colour ?? i);
        if (event.shiftKey) { const alone = all.every(each => (each === own) !== hidden.has(each)); hidden.clear(); if (!alone) for (const each of all) if (each !== own) hidden.add(each); }
        else if (!hidden.delete(own)) hidden.add(own);
        buttons.forEach((each, i) => each.setAttribute("aria-pressed", String(!hidden.has(all[i]))));
        for (const chart of drawn) chart.draw();
        document.dispatchEvent(new CustomEvent("groups"));
      });
      return button;
    });
  }

  function sparkline(svg, values, percent) {
    const width = 120, height = 28, bounds = range([{y: values}], percent);
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    svg.replaceChildren();
    const found = values.map((value, i) => [i, value]).filter(each => known(each[1]));
    if (!bounds || !found.length) return;
    const place = ([i, value]) => `${(3 + i / Math.max(1, values.length - 1) * (width - 6)).toFixed(1)},${(height - 3 - (value - bounds[0]) / (bounds[1] - bounds[0]) * (height - 6)).toFixed(1)}`;
    element("polyline", {points: found.map(place).join(" "), fill: "none", stroke: "var(--accent)", "stroke-width": 1.6, "stroke-linejoin": "round"}, null, svg);
    const [x, y] = place(found[found.length - 1]).split(",");
    element("circle", {cx: x, cy: y, r: 2.4, fill: "var(--accent)"}, null, svg);
  }

  // A slider with a name and what it says now; arrow keys move it. A second one may be played like a film.
  function slider(place, name, count, say, change, start = 0, film = false) {
    const label = element("label", {}, `${name} `, place), output = element("output", {});
    const input = element("input", {type: "range", min: 0, max: Math.max(0, count - 1), value: start, "aria-label": name});
    if (film) {
      const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
      const button = element("button", {type: "button", "aria-label": `play ${name}`}, "▶", label);
      let timer = null;
      const stop = () => { clearInterval(timer); timer = null; button.textContent = "▶"; };
      button.addEventListener("click", () => {
        if (timer) return stop();
        button.textContent = "❚❚";
        timer = setInterval(() => { input.value = (+input.value + 1) % count; show(); }, still ? 1500 : film);
      });
      input.addEventListener("pointerdown", stop);
    }
    const show = () => { const index = +input.value; output.textContent = say(index); input.setAttribute("aria-valuetext", say(index)); change(index); };
    input.addEventListener("input", show);
    place.append(input, output);
    input.disabled = count < 2;
    show();
    return input;
  }

  return {element, lineChart, forget, legend, sparkline, slider, number, colour, dash, hidden, known};
})();
