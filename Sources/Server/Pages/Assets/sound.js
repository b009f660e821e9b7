// The script that plays an hour's chunks as one, without their overlaps, and shows where it is.
"use strict";
(() => {
  const place = document.getElementById("hour");
  const chunks = [...document.querySelectorAll("tr[data-start]")].map(row => ({
    row, start: +row.dataset.start, end: +row.dataset.end, address: row.querySelector("audio").src,
    level: row.dataset.level && +row.dataset.level, rate: Math.min(192000, Math.max(8000, +row.dataset.rate || 48000)) }));
  if (!place || !chunks.length) return;
  // `skip`: milliseconds at its beginning that the chunks before it have played.
  let over = -Infinity;
  for (const chunk of chunks) {
    chunk.skip = Math.max(0, over - chunk.start);
    over = Math.max(over, chunk.end);
  }
  const parts = chunks.filter(chunk => chunk.end - chunk.start > chunk.skip);
  if (!parts.length) return;
  const first = parts[0].start, css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const clock = at => window.clock.text(at).slice(11, 19);

  const add = (parent, tag, className = "") => {
    const element = parent.appendChild(document.createElement(tag));
    element.className = className;
    return element;
  };
  const spans = (box, texts) => box.replaceChildren(...texts.map(text => {
    const span = document.createElement("span");
    span.textContent = text;
    return span;
  }));

  // A picture of a span of time with a cursor; a slider that is not seen lies on it, for pointers and keys.
  function strip(name, className) {
    const box = add(place, "div", "axes " + className), units = add(box, "span", "units"), label = add(box, "label");
    const times = add(box, "span", "times"), canvas = add(label, "canvas");
    const cursor = add(label, "i"), slider = add(label, "input");
    slider.setAttribute("aria-label", name);
    [units.ariaHidden, times.ariaHidden] = ["true", "true"];
    [slider.type, slider.step, slider.value] = ["range", 1, 0];
    let from = 0, to = 1;
    const span = (start, end) => {
      [from, to, slider.min, slider.max] = [start, end, 0, end - start];
      spans(times, [0, .25, .5, .75, 1].map(part => clock(start + part * (end - start))));
    };
    const show = at => {
      slider.value = at - from;
      slider.setAttribute("aria-valuetext", clock(at));
      cursor.style.left = `${Math.min(1, Math.max(0, (at - from) / (to - from))) * 100}%`;
    };
    slider.oninput = () => seek(from + +slider.value);
    return { box, units, canvas, span, show };
  }

  const button = add(place, "button"), words = add(place, "span", "at"), note = add(place, "span", "soft");
  const hour = strip("Time in the hour", "levels"), detail = strip("Time in the chunk", "spectrum");
  hour.span(first, over);
  spans(hour.units, ["0 dBFS", "-90"]);
  place.hidden = false;

  // Draws each chunk as high as it is loud; where nothing is, nothing was recorded.
  function levels() {
    const { canvas } = hour, [width, height] = [canvas.width, canvas.height] = [1200, 60], context = canvas.getContext("2d");
    context.fillStyle = css("--fine");
    for (const { start, end, level } of parts) {
      const top = level === "" ? height - 2 : Math.min(1, Math.max(0, -level / 90)) * (height - 2);
      context.fillRect((start - first) / (over - first) * width, top, Math.max(1, (end - start) / (over - first) * width), height);
    }
  }
  levels();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", levels);

  // One at a time; only the last that was asked for is drawn.
  let drawn, isDrawing = false;
  async function spectrogram() {
    const part = parts[current];
    if (isDrawing || drawn === part) return;
    [isDrawing, drawn] = [true, part];
    try {
      await drawSpectrogram(detail.canvas, part.address, part.rate, (part.end - part.start) / 1000);
      [note.textContent, detail.box.hidden] = ["", false];
    } catch (error) {
      [note.textContent, detail.box.hidden] = [`No spectrogram: ${error.message}.`, true];
    }
    isDrawing = false;
    spectrogram();
  }

  // Two, so that the next chunk is loaded while one plays.
  const players = [new Audio(), new Audio()];
  let current = 0, isPlaying = false;
  const player = () => players[current % 2];

  function load(index, offset) {
    const part = parts[index], one = players[index % 2];
    if (!part) return;
    one.preload = "auto";
    if (one.src !== part.address) one.src = part.address;
    one.currentTime = (offset ?? part.skip) / 1000;
  }

  function show(at) {
    const { row, start, end, rate } = parts[current];
    if (!row.classList.contains("playing")) {
      for (const row of document.querySelectorAll(".playing")) row.classList.remove("playing");
      row.classList.add("playing");
      detail.canvas.width = 1;
      detail.span(start, end);
      spans(detail.units, [`${rate / 2000} kHz`, `${rate / 4000} kHz`, "0"]);
      spectrogram();
    }
    hour.show(at);
    detail.show(at);
    words.textContent = clock(at);
    button.textContent = isPlaying ? "Pause" : "Play the hour";
  }

  // Moves the cursors with the sound.
  function follow() {
    if (!isPlaying) return;
    if (!player().seeking) show(parts[current].start + player().currentTime * 1000);
    requestAnimationFrame(follow);
  }

  // Goes to a chunk; `offset`: milliseconds from its start.
  function go(index, offset) {
    player().pause();
    if (index >= parts.length) [isPlaying, index, offset] = [false, 0, undefined];
    current = index;
    load(index, offset);
    if (isPlaying) player().play().catch(() => {});
    load(index + 1);
    show(parts[index].start + (offset ?? parts[index].skip));
  }

  // In a pause, goes to the chunk before it.
  function seek(at) {
    const index = Math.max(0, parts.filter(part => part.start + part.skip <= at).length - 1), part = parts[index];
    go(index, at < part.end ? Math.max(part.skip, at - part.start) : part.skip);
  }

  players.forEach(one => {
    const isCurrent = () => one === player();
    one.onended = () => { if (isCurrent()) go(current + 1); };
    // A file that cannot be played does not end the hour.
    one.onerror = () => { if (isCurrent() && isPlaying) go(current + 1); };
  });
  button.onclick = () => {
    isPlaying = !isPlaying;
    if (isPlaying && !player().src) go(current);
    else if (isPlaying) player().play().catch(() => {});
    else player().pause();
    show(parts[current].start + player().currentTime * 1000);
    follow();
  };

  const at = Number(new URLSearchParams(location.search).get("at"));
  if (at) seek(at); else show(first);
})();
