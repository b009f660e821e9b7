// The script of the pages: local times, and updates of an open page; without it a page has UTC and
// stays as it is.
"use strict";
(() => {
  // A page may name the zone of its times: UTC, an offset, or a name of the time zone database.
  // `data-open`: its address names none, and the server knows those of the database.
  const { zone, open } = document.documentElement.dataset, browser = Intl.DateTimeFormat().resolvedOptions().timeZone;
  if (open !== undefined && browser && browser !== "UTC") {
    const address = new URL(location);
    address.searchParams.set("zone", browser);
    location.replace(address);
  }
  const fixed = /^([+-])(\d\d):(\d\d)$/.exec(zone ?? "");
  const digits = { year: "numeric", month: "numeric", day: "numeric", hour: "numeric", minute: "numeric", second: "numeric" };
  let format;
  try { if (zone && !fixed) format = new Intl.DateTimeFormat("en", { ...digits, hourCycle: "h23", timeZone: zone }); } catch {}

  // The milliseconds by which local time is ahead of UTC: in the page's zone, else in the browser's.
  function offset(at) {
    if (fixed) return (fixed[1] + 1) * (fixed[2] * 60 + +fixed[3]) * 60000;
    if (!format) return zone ? 0 : -60000 * new Date(at).getTimezoneOffset();
    const part = Object.fromEntries(format.formatToParts(at).map(({ type, value }) => [type, +value]));
    return Date.UTC(part.year, part.month - 1, part.day, part.hour, part.minute, part.second) - Math.floor(at / 1000) * 1000;
  }

  // 2026-11-21 20:30:07.123
  const text = at => new Date(at + offset(at)).toISOString().slice(0, 23).replace("T", " ");
  window.clock = { offset, text };
  const short = at => new Intl.DateTimeFormat("en", { timeZoneName: "short" }).formatToParts(at)
    .find(part => part.type === "timeZoneName").value;

  // Shows the times of a page in the viewer's time zone, in the form that they have in UTC.
  function localise(page) {
    for (const time of page.querySelectorAll("time[datetime]")) {
      const at = +new Date(time.dateTime), utc = time.textContent;
      if (isNaN(at)) continue;
      if (zone) {
        time.title = new Date(at).toISOString().slice(0, 19).replace("T", " ") + " UTC";
        continue;
      }
      time.title = utc.endsWith("UTC") ? utc : utc + " UTC";
      if (utc.endsWith(" UTC")) time.textContent = `${text(at).slice(0, utc.length - 4)} ${short(at)}`;
      else time.textContent = text(at).slice(0, utc.length);
    }
    for (const head of page.querySelectorAll("th"))
      if (head.textContent === "Time (UTC)") head.textContent = "Time";
  }

  localise(document);
  const mark = document.getElementById("live");
  if (!mark) return;
  let source, timer, isAsking, isStale, earliest = 0;

  // Changes only what differs, so that focus and scroll position stay.
  function patch(old, fresh) {
    // A map that its own script has drawn.
    if (old.update && fresh.matches?.("[data-devices]")) return old.update(fresh);
    if (old.isEqualNode(fresh)) return;
    const [before, after] = [[...old.childNodes], [...fresh.childNodes]];
    if (old.nodeName !== fresh.nodeName || !before.length || before.length !== after.length)
      return old.replaceWith(fresh);
    for (const { name } of [...old.attributes]) if (!fresh.hasAttribute(name)) old.removeAttribute(name);
    for (const { name, value } of [...fresh.attributes]) old.setAttribute(name, value);
    before.forEach((child, index) => patch(child, after[index]));
  }

  function show(text) {
    const page = new DOMParser().parseFromString(text, "text/html");
    const time = page.querySelector(".time");
    // Skips updates while text is selected.
    if (!time || !getSelection().isCollapsed) return;
    const held = document.activeElement, link = held?.getAttribute("href");
    localise(page);
    document.title = page.title;
    patch(document.querySelector(".time"), time);
    patch(document.querySelector("main"), page.querySelector("main"));
    dispatchEvent(new Event("patched"));
    if (!link || (held.isConnected && held.getAttribute("href") === link)) return;
    // The table and the map may each have such a link.
    [...document.querySelectorAll("a")]
      .find(one => one.nodeName === held.nodeName && one.getAttribute("href") === link)
      ?.focus({ preventScroll: true });
  }

  function say(text) {
    mark.textContent = text;
    mark.className = text === "live" ? "soft" : "late";
  }

  // Plans the next request: soon after a change, otherwise in a minute.
  function plan() {
    clearTimeout(timer);
    if (!source || isAsking) return;
    // The random part spreads the requests of several viewers.
    const wait = Math.max(0, earliest - performance.now()) + 2000 * Math.random();
    timer = setTimeout(ask, isStale ? wait : 60000);
  }

  async function ask() {
    let pause = 5000;
    [isAsking, isStale] = [true, false];
    try {
      const answer = await fetch(location.pathname + location.search, { signal: AbortSignal.timeout(30000) });
      // Logged out.
      if (answer.redirected) return location.reload();
      const text = await answer.text();
      // 20 kB per second.
      if (answer.ok) pause = Math.max(2000, text.length / 20);
      if (answer.ok) show(text); else isStale = true;
      if (source?.readyState === EventSource.OPEN) say("live");
    } catch {
      isStale = true;
      say("not live");
    }
    earliest = performance.now() + pause;
    isAsking = false;
    // Otherwise the browser reconnects by itself.
    if (source?.readyState === EventSource.CLOSED) restart(); else plan();
  }

  function restart() {
    clearTimeout(timer);
    source?.close();
    source = undefined;
    say("");
    // A hidden page does not occupy a live connection.
    if (document.hidden) return;
    source = new EventSource("/live" + location.pathname);
    source.onopen = () => say("live");
    source.onmessage = () => {
      // If it was stale already, a request is planned or under way.
      if (isStale) return;
      isStale = true;
      plan();
    };
    source.onerror = () => say("not live");
    plan();
  }

  document.addEventListener("visibilitychange", restart);
  restart();
})();
