// The script that draws the numbers of a span of days with dygraphs, from the read API.
"use strict";
(() => {
  const place = document.getElementById("plots");
  if (!place || !window.Dygraph) return;
  const { device } = place.dataset, whole = [+place.dataset.from, +place.dataset.to];
  const { offset, text } = window.clock;
  const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const colours = () => ({ colors: [css("--link")], axisLineColor: css("--soft"), gridLineColor: css("--line") });
  const number = value => value.toLocaleString("en", { maximumSignificantDigits: 5, useGrouping: false });
  // The legend sets inline styles in markup, which the page's policy forbids.
  const legend = Dygraph.Plugins?.Legend ?? Dygraph.PLUGINS[0];
  Dygraph.PLUGINS = Dygraph.PLUGINS.filter(one => one !== legend);
  const graphs = new Map();
  let shown = whole, isSyncing = false;

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
    dblclick: () => show(whole) };

  // Marks round local times of the page's zone; steps in minutes, from Mondays on.
  const steps = [1, 5, 15, 30, 60, 180, 360, 720, 1440, 2880, 4320, 10080, 20160, 40320, 131040].map(minutes => minutes * 60000);
  const monday = Date.parse("1970-01-05T00:00:00Z");
  function ticker(from, to, pixels) {
    const step = steps.find(one => (to - from) / one <= pixels / 90) ?? steps.at(-1), ahead = offset(from), marks = [];
    for (let local = monday + Math.ceil((from + ahead - monday) / step) * step; local - ahead < to + 7200000; local += step) {
      const v = local - offset(local - ahead), [date, clock] = new Date(local).toISOString().split("T");
      const day = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"][new Date(local).getUTCDay()];
      if (v >= from && v <= to) marks.push({ v, label: clock.startsWith("00:00") ? `${day} ${date.slice(5)}` : clock.slice(0, 5) });
    }
    return marks;
  }

  // The room of all plots is there from the start, so that nothing moves when they come.
  for (const figure of document.querySelectorAll("figure[data-key], figure[data-sound]"))
    for (const [tag, name] of [["output", "hover soft"], ["div", "graph"]]) figure.appendChild(document.createElement(tag)).className = name;

  function draw(figure, rows, unit, options) {
    const box = figure.querySelector(".graph"), hover = figure.querySelector(".hover");
    if (!rows.length) return void (hover.textContent = "No data in this time.");
    const say = index => {
      const [at, [least, mean, most]] = rows[index], span = least === most ? "" : ` (${number(least)} to ${number(most)})`;
      hover.textContent = `${text(+at).slice(0, 16)}: ${number(mean)} ${unit}${span}`;
    };
    const graph = new Dygraph(box, rows, {
      labels: ["Time", "value"], customBars: true, ylabel: unit, yLabelWidth: 16, dateWindow: shown, interactionModel: model, rightGap: 0,
      axisLabelFontSize: 12, strokeWidth: 1.5, highlightCircleSize: 4,
      axes: { x: { ticker, axisLabelWidth: 80 }, y: { axisLabelWidth: 60, pixelsPerLabel: 24 } }, ...colours(),
      highlightCallback: (event, x, points, row) => { if (rows[row]?.[1][1] != null) say(row); },
      unhighlightCallback: () => { hover.textContent = ""; },
      drawCallback: (graph, isFirst) => { if (!isFirst) show(graph.xAxisRange()); },
      ...options,
    });
    graphs.set(figure, graph);
    name(figure, box);
    keys(box, graph, rows, say);
    // A field of dygraphs that is not used and has no name.
    for (const field of box.querySelectorAll("input")) field.hidden = true;
  }

  // The caption has the quantity, its unit, least, greatest and mean.
  function name(figure, box) {
    box.tabIndex = 0;
    box.setAttribute("role", "img");
    box.setAttribute("aria-label", `Plot: ${figure.querySelector("figcaption").textContent.trim()}`);
  }

  // The arrow keys go from value to value of what is shown.
  function keys(box, graph, rows, say) {
    const ways = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10, Home: -Infinity, End: Infinity };
    let current = -1;
    box.onkeydown = event => {
      const way = ways[event.key], [from, to] = graph.xAxisRange();
      if (!way || event.ctrlKey || event.altKey || event.metaKey) return;
      const seen = [...rows.keys()].filter(index => rows[index][1][1] !== null && rows[index][0] >= from && rows[index][0] <= to);
      if (!seen.length) return;
      event.preventDefault();
      // The first key goes to an end.
      const before = seen.indexOf(current), next = before < 0 && Number.isFinite(way) ? (way > 0 ? 0 : Infinity) : before + way;
      current = seen[Math.min(seen.length - 1, Math.max(0, next))];
      graph.setSelection(current);
      say(current);
    };
    box.onblur = () => graph.clearSelection();
  }

  // Rows of dygraphs, with a hole where values are missing for longer than `most`.
  function rows({ time_ms, min, mean, max }, step, factor = 1, most) {
    const pauses = time_ms.slice(1).map((at, index) => at - time_ms[index]).sort((a, b) => a - b);
    const found = [];
    most ??= 2.5 * Math.max(step, pauses[pauses.length >> 1] ?? 0);
    time_ms.forEach((at, index) => {
      if (index && at - time_ms[index - 1] > most) found.push([new Date(at - step / 2), [null, null, null]]);
      found.push([new Date(at + step / 2), [min[index], mean[index], max[index]].map(value => value * factor)]);
    });
    return found;
  }

  // Formats the length of an interval: `5 minutes`, `hour`, `2 days`.
  function length(step) {
    const [unit, name] = [[86400000, "day"], [3600000, "hour"], [60000, "minute"], [1000, "second"]].find(([unit]) => step >= unit);
    return step === unit ? name : `${step / unit} ${name}s`;
  }

  async function ask(what) {
    const [from, to] = whole.map(at => new Date(at).toISOString());
    const answer = await fetch(`/api/v1/devices/${device}/series?${new URLSearchParams({ from, to, ...what })}`);
    // Logged out.
    if (answer.status === 401) return location.reload();
    if (!answer.ok) throw new Error(answer.statusText);
    const found = await answer.json();
    place.querySelector("output").textContent = length(found.step_s * 1000);
    return found;
  }

  async function numbers(section) {
    const { stream, beacon } = section.dataset;
    const found = await ask(beacon ? { stream, beacon } : { stream });
    for (const figure of section.querySelectorAll("figure[data-key]")) {
      const { key, unit, factor } = figure.dataset;
      const one = found.series.find(one => one.key === key && (one.beacon ?? "") === (beacon ?? ""));
      draw(figure, one ? rows(one, found.step_s * 1000, +factor) : [], unit);
    }
  }

  // A click leads to the last sound of the nearest point's interval.
  async function level(figure) {
    const { sound } = figure.dataset, found = await ask({ stream: sound, key: "average_db_level" }), step = found.step_s * 1000;
    const loudest = found.series.flatMap(({ time_ms, max }) => rows({ time_ms, min: max, mean: max, max }, step, 1, step));
    const heard = loudest.filter(row => row[1][1] !== null).map(row => +row[0]);
    figure.querySelector(".soft").textContent = `The loudest of each ${length(step)}. Click to listen.`;
    draw(figure, loudest, "dBFS", { valueRange: [-90, 0], drawPoints: true, pointSize: 3, clickCallback: (event, x) => {
      const near = heard.reduce((one, other) => Math.abs(other - x) < Math.abs(one - x) ? other : one);
      const query = new URLSearchParams({ at: near + step / 2 - 1, zone: document.documentElement.dataset.zone });
      location.href = `/device/${device}/${new Date(near).toISOString().slice(0, 10)}/${sound}?${query}`;
    } });
  }

  const load = part => "sound" in part.dataset ? level(part) : numbers(part);

  // One request at a time, of what is looked at.
  let last = Promise.resolve();
  const observer = new IntersectionObserver(entries => {
    for (const { isIntersecting, target } of entries) {
      if (!isIntersecting) continue;
      observer.unobserve(target);
      last = last.then(() => load(target)).catch(() => {
        const note = target.appendChild(document.createElement("p"));
        note.className = "wrong";
        note.textContent = "The plots could not be loaded; load the page again.";
      });
    }
  }, { rootMargin: "400px" });
  place.hidden = false;
  for (const part of document.querySelectorAll(".plots[data-stream], figure[data-sound]")) observer.observe(part);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    for (const graph of graphs.values()) graph.updateOptions(colours());
  });
})();
