"use strict";
// Everything is readable without this: it shows times in the viewer's zone, draws what the tables say, and keeps pages fresh.
(() => {
  const localise = (root) => {
    for (const time of root.querySelectorAll("time[datetime]")) {
      const moment = new Date(time.dateTime);
      if (Number.isNaN(moment.getTime())) continue;
      time.title = time.dateTime;
      time.textContent = moment.toLocaleString();
    }
  };

  // A table with data-plot is drawn above itself: its first column are days, the columns with data-series are lines.
  const draw = (table) => {
    if (!window.uPlot || table.dataset.drawn) return;
    table.dataset.drawn = "yes";
    const heads = [...table.tHead.rows[0].cells];
    const series = heads.map((head, index) => ({ index, name: head.textContent, of: head.dataset.series })).filter((one) => one.of !== undefined);
    const rows = [...table.tBodies[0].rows];
    if (rows.length === 0 || series.length === 0) return;
    const number = (cell) => Number(cell.dataset.value ?? cell.textContent);
    const data = [rows.map((row) => Date.parse(row.cells[0].dataset.value) / 1000)];
    for (const one of series) data.push(rows.map((row) => number(row.cells[one.index])));
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(name).trim();
    const axis = { stroke: colour("--text"), grid: { stroke: colour("--line") }, ticks: { stroke: colour("--line") } };
    const place = document.createElement("div");
    place.className = "plot";
    place.setAttribute("aria-hidden", "true");
    const frame = table.closest(".wide") ?? table;
    frame.before(place);
    const strokes = ["--link", "--bad", "--good", "--doubt"];
    const width = Math.min(760, Math.max(260, frame.clientWidth || 700));
    new uPlot({
      width, height: 200, axes: [axis, { ...axis, size: 70 }], scales: { x: { time: true, range: (_, from, to) => (from === to ? [from - 86400, to + 86400] : [from, to]) } },
      series: [{}, ...series.map((one, place) => ({
        label: one.name, stroke: colour(strokes[place % strokes.length]), width: 2, points: { show: true, size: 6 },
      }))],
    }, data, place);
  };

  const enliven = (root) => {
    localise(root);
    root.querySelectorAll("table[data-plot]").forEach(draw);
  };

  // The part that changes is taken out of the same page, asked for again. Whoever is at work in it is not disturbed.
  const refresh = async (part) => {
    if (part.contains(document.activeElement) && document.activeElement !== document.body) return;
    const reply = await fetch(location.href, { headers: { accept: "text/html" } });
    if (!reply.ok) return;
    const page = new DOMParser().parseFromString(await reply.text(), "text/html");
    const fresh = page.getElementById(part.id);
    if (!fresh || !part.isConnected) return;
    part.replaceChildren(...document.importNode(fresh, true).childNodes);
    enliven(part);
  };

  enliven(document);
  for (const part of document.querySelectorAll("[data-seconds]")) {
    // A page that took long is asked for less often: looking at a gateway must not become its work.
    const again = async (wait) => {
      await new Promise((go) => setTimeout(go, wait));
      const began = performance.now();
      if (!document.hidden) await refresh(part).catch(() => {});
      again(Math.max(1000 * Number(part.dataset.seconds), 20 * (performance.now() - began)));
    };
    again(1000 * Number(part.dataset.seconds));
  }
  for (const part of document.querySelectorAll("[data-events]")) {
    let waiting = 0;
    const events = new EventSource(part.dataset.events);
    events.onmessage = () => {
      if (waiting) return;
      waiting = setTimeout(() => { waiting = 0; refresh(part).catch(() => {}); }, 200);
    };
    addEventListener("pagehide", () => events.close());
  }
})();
