// Runs while they train: a list that follows them, and a page for one or several. What it reads is only ever set as text.
"use strict";
(() => {
  const {element} = drol, place = name => document.getElementById(name);
  const rows = new Map(), chosen = new Set();
  let version = 0, shown = [], detailVersion = -1, charts = new Map(), groupsShown = "", timer = null;

  const duration = seconds => {
    if (seconds === null || seconds === undefined) return "";
    if (seconds < 90) return `${Math.round(seconds)} s`;
    return seconds < 5400 ? `${Math.round(seconds / 60)} min` : seconds < 172800 ? `${(seconds / 3600).toFixed(1)} h` : `${Math.round(seconds / 86400)} days`;
  };
  const set = (node, text) => { if (node.textContent !== text) node.textContent = text; };
  const count = value => value.toLocaleString("en");

  // --- the list
  function makeRow(run) {
    const item = element("li"), parts = {item, run};
    parts.box = element("input", {type: "checkbox", "aria-label": `compare ${run.name}`}, null, item);
    parts.box.addEventListener("change", () => { if (parts.box.checked) chosen.add(run.id); else chosen.delete(run.id); showChosen(); });
    const name = element("div", {class: "name"}, null, item);
    parts.link = element("a", {href: `#/runs/${run.id}`, title: run.name}, run.name.split("/").slice(-2).join("/"), name);
    parts.about = element("span", {}, "", name);
    parts.state = element("span", {class: "state"}, "", item);
    const progress = element("div", {class: "progress"}, null, item);
    parts.words = element("span", {}, "", progress);
    parts.bar = element("progress", {max: 1, value: 0, "aria-label": "progress"}, null, progress);
    parts.score = element("div", {class: "score"}, null, item);
    parts.spark = element("svg", {role: "img"}, null, item);
    return parts;
  }

  function updateRow(parts, run) {
    parts.run = run;
    set(parts.about, run.trouble || `${run.method} on ${run.task}, ${run.seeds} seed${run.seeds === 1 ? "" : "s"}${run.bad ? `, ${run.bad} damaged lines left out` : ""}${run.reading ? ", still reading" : ""}`);
    set(parts.state, run.state);
    parts.state.className = `state ${run.state}`;
    parts.bar.value = run.total ? Math.min(1, run.step / run.total) : 0;
    showLeft(parts, run.left);
    parts.score.replaceChildren(run.score === null ? "" : String(+run.score.toFixed(1)));
    if (run.score !== null) element("small", {}, run.percent ? "success %" : "score", parts.score);
    drol.sparkline(parts.spark, run.values, run.percent);
    parts.spark.setAttribute("aria-label", `${run.metric}: ${run.values.length} points`);
  }

  function showLeft(parts, left) {
    const {run} = parts;
    set(parts.words, run.trouble ? "" : `${count(run.step)} of ${count(run.total)}${left === null || left === undefined ? "" : `, ${duration(left)} left`}`);
  }

  const orders = {
    recent: (a, b) => (b.state === "running") - (a.state === "running") || b.updated - a.updated || a.name.localeCompare(b.name),
    name: (a, b) => a.name.localeCompare(b.name, "en", {numeric: true}),
    score: (a, b) => (b.score ?? -Infinity) - (a.score ?? -Infinity) || a.name.localeCompare(b.name),
    progress: (a, b) => a.step / a.total - b.step / b.total || a.name.localeCompare(b.name),
  };

  function arrange() {
    const wanted = place("find").value.trim().toLowerCase(), list = place("runs");
    const order = [...rows.values()].sort((a, b) => orders[place("order").value](a.run, b.run));
    order.forEach((parts, index) => {
      const {run, item} = parts;
      item.hidden = wanted !== "" && !`${run.name} ${run.task} ${run.method} ${run.state}`.toLowerCase().includes(wanted);
      if (list.children[index] !== item) list.insertBefore(item, list.children[index] || null);
    });
  }

  function showChosen() {
    const button = place("compare");
    button.disabled = chosen.size < 1;
    set(button, chosen.size > 1 ? `compare ${chosen.size} runs` : chosen.size ? "show 1 run" : "compare");
  }

  function showList(found) {
    for (const id of found.gone) { rows.get(id)?.item.remove(); rows.delete(id); chosen.delete(id); }
    for (const run of found.runs) { if (!rows.has(run.id)) rows.set(run.id, makeRow(run)); updateRow(rows.get(run.id), run); }
    for (const [id, parts] of rows) showLeft(parts, found.left[id]);
    if (found.runs.length || found.gone.length) arrange();
    showChosen();
    const running = [...rows.values()].filter(each => each.run.state === "running").length;
    const many = found.too_many ? `; only the first ${count(found.too_many)} runs are watched` : "";
    place("status").className = "";
    set(place("status"), `${count(found.count)} run${found.count === 1 ? "" : "s"}, ${running} running${found.reading ? "; reading what was written before" : ""}${many}`);
    place("empty").hidden = found.count > 0;
    showSweep(found.sweep);
  }

  function showSweep(sweep) {
    const where = place("sweep");
    where.hidden = !sweep;
    const text = JSON.stringify(sweep);
    if (!sweep || where.dataset.text === text) return;
    where.dataset.text = text;
    where.replaceChildren(element("h2", {}, `sweep ${sweep.name}`), element("p", {}, `${sweep.words}${sweep.running ? "" : "; nobody works on it now"}`));
    if (sweep.best.length) where.append(table(sweep.best));
    if (sweep.failed.length) where.append(element("h3", {}, "failed"), table([["run", "reason"], ...sweep.failed]));
  }

  function table(lines) {
    const wide = element("div", {class: "wide"}), made = element("table", {class: "scores"}, null, wide);
    lines.forEach((cells, index) => { const row = element("tr", {}, null, made); for (const cell of cells) element(index ? "td" : "th", {}, cell, row); });
    return wide;
  }

  // --- the page of some runs
  function showDetails(found) {
    const where = place("details");
    if (!found.found.length) { emptyDetails(); where.replaceChildren(element("p", {class: "card"}, "This run is not here any more."), back()); return; }
    const cards = place("cards");
    if (found.unchanged && cards) { found.runs.forEach(updateCard); return; }
    if (found.unchanged) return;
    const kind = JSON.stringify([found.groups, found.found, found.learning !== null, found.metrics.map(chart => chart.name)]);
    if (kind !== groupsShown || !cards) { groupsShown = kind; buildDetails(where, found); }
    else {
      if (found.learning) redraw("learning", found.learning);
      for (const chart of found.metrics) redraw(chart.name, chart);
    }
    found.runs.forEach(updateCard);
    showAbout(found.about);
  }

  function redraw(name, spec) { const chart = charts.get(name); if (chart) { chart.spec = spec; chart.draw(); } }

  function emptyDetails() { for (const chart of charts.values()) drol.forget(chart); charts = new Map(); groupsShown = ""; }

  const back = () => { const line = element("p", {class: "back"}); element("a", {href: "#/"}, "← all runs", line); return line; };

  function buildDetails(where, found) {
    emptyDetails();
    groupsShown = JSON.stringify([found.groups, found.found, found.learning !== null, found.metrics.map(chart => chart.name)]);
    where.replaceChildren(back());
    const cards = element("div", {class: "cards", id: "cards"}, null, where);
    for (const run of found.runs) {
      const card = element("div", {class: "card", "data-id": run.id}, null, cards);
      element("h2", {}, run.name, card);
      for (const name of ["score", "state", "words", "trouble"]) element(name === "state" ? "span" : "div", {class: name}, "", card);
      element("progress", {max: 1, value: 0, "aria-label": "progress"}, null, card);
    }
    const legend = element("div", {}, null, where);
    drol.hidden.clear();
    if (found.groups.length > 1) drol.legend(legend, found.groups);
    if (found.learning) {
      const part = element("section", {}, null, where);
      element("h2", {}, "Learning", part);
      element("p", {}, "The mean score over seeds at every evaluation, with its 95% interval; thin lines are single seeds.", part);
      charts.set("learning", drol.lineChart(element("div", {}, null, part), found.learning));
    }
    if (found.metrics.length) {
      const part = element("section", {}, null, where);
      element("h2", {}, "Metrics", part);
      const grid = element("div", {class: "charts"}, null, part);
      for (const chart of found.metrics) {
        const cell = element("div", {}, null, grid);
        element("h3", {}, chart.title, cell);
        element("p", {}, chart.words, cell);
        charts.set(chart.name, drol.lineChart(element("div", {}, null, cell), chart));
      }
    }
    element("div", {id: "about"}, null, where);
  }

  function updateCard(run) {
    const card = document.querySelector(`#cards [data-id="${run.id}"]`);
    if (!card) return;
    const part = name => card.querySelector(name);
    set(part(".score"), run.score === null ? "" : String(+run.score.toFixed(1)) + (run.percent ? "%" : ""));
    set(part(".state"), run.state);
    part(".state").className = `state ${run.state}`;
    set(part(".words"), `${run.method} on ${run.task}; ${count(run.step)} of ${count(run.total)} updates${run.left === null ? "" : `, ${duration(run.left)} left`}`);
    set(part(".trouble"), [run.trouble, run.bad ? `${run.bad} damaged lines are left out` : ""].filter(Boolean).join("; "));
    part("progress").value = run.total ? Math.min(1, run.step / run.total) : 0;
  }

  function showAbout(about) {
    const where = place("about"), text = JSON.stringify(about);
    if (!where || where.dataset.text === text) return;
    where.dataset.text = text;
    where.replaceChildren();
    for (const run of about) {
      const part = element("section", {}, null, where);
      element("h2", {}, about.length > 1 ? run.path : "The run", part);
      if (run.command) { element("h3", {}, "made by", part); element("code", {}, run.command, element("pre", {}, null, part)); }
      const links = element("p", {}, null, part);
      const alone = run.report && about.length === 1;  // then all of the report is here
      if (run.report) {
        const page = `/file/${run.id}/page/report.html?made=${run.report}`;
        element("a", {href: page}, "its report, with episodes and actions", links);
        if (alone) element("iframe", {src: page, title: "the report of the run", sandbox: "allow-scripts", loading: "lazy"}, null, part);
      } else links.append("No report yet; make one with ", element("code", {}, `drol report ${run.path}`));
      const shots = element("div", {class: "shots"}, null, part);
      for (const name of alone ? [] : run.files.videos) element("img", {src: `/file/${run.id}/videos/${encodeURIComponent(name)}`, alt: name, loading: "lazy"}, null, shots);
      for (const [title, lines] of [["evaluations after training", run.later], ["by data alone", run.offline]]) if (lines.length) part.append(element("h3", {}, title), table(lines));
      const details = element("details", {}, null, part);
      element("summary", {}, "settings and circumstances", details);
      const pair = element("div", {class: "pair"}, null, details);
      for (const values of [run.settings, run.circumstances]) {
        const made = element("table", {}, null, pair);
        for (const [name, value] of Object.entries(values)) if (value !== "") { const row = element("tr", {}, null, made); element("th", {}, name, row); element("td", {}, value, row); }
      }
    }
  }

  // --- following
  function route() {
    const match = location.hash.match(/^#\/runs\/([0-9a-f,]+)$/);
    shown = match ? match[1].split(",") : [];
    place("list").hidden = shown.length > 0;
    place("details").hidden = !shown.length;
    detailVersion = -1;
    emptyDetails();
    place("details").replaceChildren(back());
    follow();
  }

  async function follow() {
    clearTimeout(timer);
    let reading = false;  // what was written before it was watched; then there is more with every look
    try {
      if (shown.length) {
        const asked = shown.join(","), answer = await fetch(`/details.json?runs=${asked}&since=${Math.max(0, detailVersion)}`);
        if (!answer.ok) throw new Error(String(answer.status));
        const found = await answer.json();
        if (asked === shown.join(",")) { detailVersion = found.version; showDetails(found); place("status").className = ""; reading = found.runs.some(run => run.reading); set(place("status"), found.found.length < shown.length ? `following ${found.found.length} of ${shown.length} runs, at most ${found.most} at once` : `following ${found.found.length} run${found.found.length === 1 ? "" : "s"}`); }
      } else {
        const answer = await fetch(`/runs.json?since=${version}`);
        if (!answer.ok) throw new Error(String(answer.status));
        const found = await answer.json();
        if (found.version < version) { version = 0; rows.clear(); place("runs").replaceChildren(); }
        else { version = found.version; reading = found.reading; showList(found); }
      }
    } catch (error) {
      place("status").className = "lost";
      set(place("status"), "no answer from drol watch; trying again");
    }
    clearTimeout(timer);
    timer = setTimeout(follow, document.hidden ? 5000 : reading ? 150 : 1000);
  }

  place("find").addEventListener("input", arrange);
  place("order").addEventListener("change", arrange);
  place("compare").addEventListener("click", () => { location.hash = `#/runs/${[...chosen].join(",")}`; });
  document.addEventListener("keydown", event => {
    if (event.key === "Escape" && shown.length && event.target === document.body) location.hash = "#/";
    if (event.key === "/" && !shown.length && event.target === document.body) { place("find").focus(); event.preventDefault(); }
  });
  document.addEventListener("visibilitychange", () => { if (!document.hidden) follow(); });
  addEventListener("hashchange", route);
  route();
})();
