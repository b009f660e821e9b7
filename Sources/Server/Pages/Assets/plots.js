// The script that draws a day's numbers with dygraphs, from the read API.
"use strict";
(() => {
  const place = document.getElementById("range");
  if (!place || !window.Dygraph) return;
  const { device, day } = place.dataset, DAY = 86400000;
  const end = Date.parse(day + "T00:00:00Z") + DAY;
  const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const colours = () => ({ colors: [css("--link")], axisLineColor: css("--soft"), gridLineColor: css("--line") });
  const number = value => value.toLocaleString("en", { maximumSignificantDigits: 5, useGrouping: false });
  const two = value => String(value).padStart(2, "0");
  const time = at => `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${two(at.getHours())}:${two(at.getMinutes())}`;
  // The legend sets inline styles in markup, which the page's policy forbids.
  const legend = Dygraph.Plugins?.Legend ?? Dygraph.PLUGINS[0];
  Dygraph.PLUGINS = Dygraph.PLUGINS.filter(one => one !== legend);
  const graphs = new Map();
  let days = 1, shown = [end - DAY, end], isSyncing = false;

  // Shows the same time in all plots.
  function show(range) {
    if (isSyncing || (range[0] === shown[0] && range[1] === shown[1])) return;
    [isSyncing, shown] = [true, range];
    for (const graph of graphs.values()) graph.updateOptions({ dateWindow: range });
    isSyncing = false;
  }

  // A finger scrolls the page, two fingers zoom.
  const usual = Dygraph.defaultInteractionModel;
  const two_fingers = name => (event, graph, context) => { if (event.touches.length > 1) usual[name](event, graph, context); };
  const model = { ...usual, touchstart: two_fingers("touchstart"), touchmove: two_fingers("touchmove"), touchend: () => {},
    dblclick: () => show([end - days * DAY, end]) };

  // The room of all plots is there from the start, so that nothing moves when they come.
  for (const figure of document.querySelectorAll("figure[data-key], figure[data-levels]"))
    for (const name of ["hover soft", "graph"]) figure.appendChild(document.createElement("div")).className = name;

  function draw(figure, rows, unit, options) {
    const graph = figure.querySelector(".graph"), hover = figure.querySelector(".hover");
    graphs.get(figure)?.destroy();
    graphs.delete(figure);
    if (!rows.length) return void (hover.textContent = "No data in this time.");
    hover.textContent = "";
    graphs.set(figure, new Dygraph(graph, rows, {
      labels: ["Time", "value"], customBars: true, ylabel: unit, yLabelWidth: 16, dateWindow: shown, interactionModel: model,
      axisLabelFontSize: 12, strokeWidth: 1.5, highlightCircleSize: 4, axes: { y: { axisLabelWidth: 60, pixelsPerLabel: 24 } }, ...colours(),
      highlightCallback: (event, x, points) => {
        const value = points[0]?.yval, row = rows.find(row => +row[0] === x)?.[1];
        if (!row || !Number.isFinite(value)) return;
        const span = row[0] === row[2] ? "" : ` (${number(row[0])} to ${number(row[2])})`;
        hover.textContent = `${time(new Date(x))}: ${number(value)} ${unit}${span}`;
      },
      unhighlightCallback: () => { hover.textContent = ""; },
      drawCallback: (graph, isFirst) => { if (!isFirst) show(graph.xAxisRange()); },
      ...options,
    }));
    // A field of dygraphs that is not used and has no name.
    for (const field of graph.querySelectorAll("input")) field.hidden = true;
  }

  // Rows of dygraphs, with a hole where values are missing for longer than `most`.
  function rows({ time_ms, min, mean, max }, step, most) {
    const steps = time_ms.slice(1).map((at, index) => at - time_ms[index]).sort((a, b) => a - b);
    const found = [];
    most ??= 2.5 * Math.max(step, steps[steps.length >> 1] ?? 0);
    time_ms.forEach((at, index) => {
      if (index && at - time_ms[index - 1] > most) found.push([new Date(at - step / 2), [null, null, null]]);
      found.push([new Date(at + step / 2), [min[index], mean[index], max[index]]]);
    });
    return found;
  }

  // Returns nothing if another time was chosen before the answer came.
  async function ask(what) {
    const range = days;
    const query = new URLSearchParams({ from: new Date(end - days * DAY).toISOString(), to: new Date(end).toISOString(), ...what });
    const answer = await fetch(`/api/v1/devices/${device}/series?${query}`);
    // Logged out.
    if (answer.status === 401) return location.reload();
    if (!answer.ok) throw new Error(answer.statusText);
    const found = await answer.json();
    return range === days ? found : undefined;
  }

  async function numbers(section) {
    const { stream, beacon } = section.dataset;
    const found = await ask(beacon ? { stream, beacon } : { stream });
    if (!found) return;
    for (const figure of section.querySelectorAll("figure[data-key]")) {
      const one = found.series.find(one => one.key === figure.dataset.key && (one.beacon ?? "") === (beacon ?? ""));
      draw(figure, one ? rows(one, found.step_s * 1000) : [], one?.unit ?? "");
    }
  }

  // A click leads to the last sound of the nearest point's interval.
  function drawLevels(figure, rows, minutes) {
    const path = figure.dataset.sound.split("/"), heard = rows.filter(row => row[1][1] !== null).map(row => +row[0]);
    figure.querySelector("figcaption output").textContent = minutes < 60 ? `${minutes} minutes` : `${minutes / 60} hours`;
    draw(figure, rows, "dBFS", { valueRange: [-90, 0], drawPoints: true, pointSize: 3, clickCallback: (event, x) => {
      const near = heard.reduce((one, other) => Math.abs(other - x) < Math.abs(one - x) ? other : one);
      path[3] = new Date(near).toISOString().slice(0, 10);
      location.href = `${path.join("/")}?at=${near + minutes * 30000 - 1}`;
    } });
  }

  // The page has a day's levels.
  async function levels(figure) {
    if (days === 1) return drawLevels(figure, figure.dataset.levels.split(",").map((level, index) => {
      const value = level === "" ? null : +level;
      return [new Date(end - DAY + (index + .5) * 300000), [value, value, value]];
    }), 5);
    const found = await ask({ stream: figure.dataset.sound.split("/")[4], key: "average_db_level" });
    if (!found) return;
    const step = found.step_s * 1000;
    const loudest = found.series.flatMap(({ time_ms, max }) => rows({ time_ms, min: max, mean: max, max }, step, step));
    drawLevels(figure, loudest, found.step_s / 60);
  }

  async function load(part) {
    await ("levels" in part.dataset ? levels(part) : numbers(part));
    part.querySelector(".wrong")?.remove();
  }

  // One request at a time, of what is looked at.
  let last = Promise.resolve();
  const observer = new IntersectionObserver(entries => {
    for (const { isIntersecting, target } of entries) {
      if (!isIntersecting) continue;
      observer.unobserve(target);
      last = last.then(() => load(target)).catch(() => {
        const note = target.querySelector(".wrong") ?? target.appendChild(document.createElement("p"));
        note.className = "wrong";
        note.textContent = "The plots could not be loaded; choose the time again.";
      });
    }
  }, { rootMargin: "400px" });
  const parts = document.querySelectorAll(".plots[data-stream], figure[data-levels]");

  const buttons = [["Day", 1], ["Week", 7], ["Month", 30]].map(([name, count]) => {
    const button = place.appendChild(document.createElement("button"));
    button.textContent = name;
    button.title = count > 1 ? `The ${count} days until ${day}` : day;
    button.onclick = () => {
      days = count;
      for (const one of buttons) one.setAttribute("aria-pressed", one === button);
      show([end - days * DAY, end]);
      only.textContent = days > 1 ? `Bars, track and numbers are those of ${day}.` : "";
      for (const part of parts) { observer.unobserve(part); observer.observe(part); }
    };
    button.setAttribute("aria-pressed", count === 1);
    return button;
  });
  const words = place.appendChild(document.createElement("span"));
  words.className = "soft";
  words.textContent = `Time in ${Intl.DateTimeFormat().resolvedOptions().timeZone}. Drag to zoom, double-click for all.`;
  const only = place.appendChild(document.createElement("span"));
  only.className = "soft";
  place.hidden = false;
  for (const part of parts) observer.observe(part);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    for (const graph of graphs.values()) graph.updateOptions(colours());
  });
})();
