// The script that draws tracks and devices with leaflet, in place of the drawings.
"use strict";
(() => {
  if (!window.L) return;
  const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const time = at => window.clock.text(at).slice(0, 19);

  // The parts of a track: fixes between gaps, where the position is unknown.
  const parts = text => text.split(";").map(part => part.split(" ").map(fix => {
    const [time, ...at] = fix.split(",").map(Number);
    return { time, at };
  }));

  // The server of the tiles learns this server's address, as many ask for, and no path.
  const Tiles = L.TileLayer.extend({ createTile(place, done) {
    const tile = document.createElement("img");
    tile.referrerPolicy = "origin";
    tile.alt = "";
    tile.onload = () => this._tileOnLoad(done, tile);
    tile.onerror = event => this._tileOnError(done, tile, event);
    tile.src = this.getTileUrl(place);
    return tile;
  } });

  // Lines at round degrees, five across the map at most.
  function grid(map) {
    const lines = L.layerGroup().addTo(map);
    const label = (at, text, kind) =>
      L.marker(at, { interactive: false, keyboard: false, icon: L.divIcon({ className: "degrees " + kind, html: text, iconSize: null }) }).addTo(lines);
    const draw = () => {
      lines.clearLayers();
      const bounds = map.getBounds(), span = Math.max(bounds.getNorth() - bounds.getSouth(), (bounds.getEast() - bounds.getWest()) / 2);
      const power = 10 ** Math.floor(Math.log10(span / 4)), step = power * [1, 2, 5, 10].find(one => one * power >= span / 4);
      const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
      const style = { color: css("--line"), weight: 1, interactive: false };
      for (let n = Math.ceil(bounds.getSouth() / step); n * step < bounds.getNorth(); n++) {
        L.polyline([[n * step, bounds.getWest()], [n * step, bounds.getEast()]], style).addTo(lines);
        // Not across the edge.
        if (map.latLngToContainerPoint([n * step, 0]).y < map.getSize().y - 20) label([n * step, bounds.getEast()], `${Math.abs(n * step).toFixed(digits)}° ${n < 0 ? "S" : "N"}`, "latitude");
      }
      const x = n => map.latLngToContainerPoint([0, n * step]).x, every = Math.ceil(70 / (x(1) - x(0)));
      for (let n = Math.ceil(bounds.getWest() / step); n * step < bounds.getEast(); n++) {
        L.polyline([[bounds.getSouth(), n * step], [bounds.getNorth(), n * step]], style).addTo(lines);
        // Not below the buttons, across the edge, or over another.
        if (x(n) > 64 && x(n) < map.getSize().x - 60 && n % every === 0) label([bounds.getNorth(), n * step], `${Math.abs(n * step).toFixed(digits)}° ${n < 0 ? "W" : "E"}`, "longitude");
      }
    };
    map.on("moveend", draw);
    return draw;
  }

  // Puts a map in place of the drawing; `bounds`: what it shows.
  function open(box, bounds) {
    const place = document.createElement("div");
    place.className = "map leaflet";
    place.setAttribute("role", "application");
    place.setAttribute("aria-label", box.querySelector("svg").getAttribute("aria-label"));
    box.replaceChildren(place);
    // One finger and the wheel scroll the page.
    const { tiles } = box.dataset;
    const map = L.map(place, { maxZoom: 19, zoomSnap: tiles ? 1 : .25, scrollWheelZoom: false, dragging: !L.Browser.mobile, tap: false, attributionControl: false });
    map.fitBounds(bounds, { maxZoom: 16, animate: false });
    L.control.scale({ maxWidth: 160 }).addTo(map);
    if (tiles) {
      const { hostname } = new URL(tiles), source = L.control.attribution({ prefix: false }).addTo(map);
      source.addAttribution(/(^|[.])openstreetmap[.]org$/.test(hostname) ? "© OpenStreetMap contributors" : `Tiles: ${hostname}`);
      new Tiles(tiles).addTo(map);
    } else {
      const redraw = grid(map);
      redraw();
      matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
    }
    return map;
  }

  function draw(box) {
    const found = parts(box.dataset.track), fixes = found.flat(), map = open(box, L.latLngBounds(fixes.map(fix => fix.at)).pad(.05));
    const line = { color: css("--link"), weight: 3 }, hole = { color: css("--late"), weight: 2, dashArray: "4 6", interactive: false };
    const lines = found.map((part, index) => {
      if (index) L.polyline([found[index - 1].at(-1).at, part[0].at], hole).addTo(map);
      const drawn = L.polyline(part.map(fix => fix.at), line).addTo(map).bindTooltip("", { sticky: true });
      drawn.on("mousemove click", ({ latlng }) => {
        const away = fix => map.distance(fix.at, latlng);
        const nearest = part.reduce((best, fix) => { const far = away(fix); return far < best.far ? { far, fix } : best; }, { far: Infinity }).fix;
        drawn.setTooltipContent(`${time(nearest.time)}, ${nearest.at[0].toFixed(5)}, ${nearest.at[1].toFixed(5)}`);
      });
      return drawn;
    });
    const dots = [["start", fixes[0], 5], ["end", fixes.at(-1), 8]].map(([name, fix, radius]) =>
      L.circleMarker(fix.at, { radius, color: css("--card"), fillColor: css("--link"), fillOpacity: 1, weight: 2 })
        .addTo(map).bindTooltip(`${name}, ${time(fix.time)}`));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      for (const one of lines) one.setStyle({ color: css("--link") });
      for (const one of dots) one.setStyle({ color: css("--card"), fillColor: css("--link") });
    });
  }

  // The links of the drawing, as links on the map; a live page brings new ones.
  function devices(box) {
    const links = page => [...page.querySelectorAll("svg a")], at = link => link.dataset.at.split(",").map(Number);
    const drawing = box.firstElementChild, map = open(box, L.latLngBounds(links(box).map(at)).pad(.15)), known = new Map();
    // Names on the right lie left of their dots.
    const turn = () => known.forEach(({ dot, marker }) =>
      dot.classList.toggle("left", map.latLngToContainerPoint(marker.getLatLng()).x > .6 * map.getSize().x));
    map.on("moveend", turn);
    box.update = fresh => {
      const found = links(fresh), left = new Set(known.keys());
      for (const [order, link] of found.entries()) {
        const address = link.getAttribute("href"), title = link.getAttribute("aria-label");
        left.delete(address);
        if (!known.has(address)) {
          const dot = document.createElement("a"), icon = L.divIcon({ className: "", html: dot, iconSize: null });
          dot.href = address;
          known.set(address, { dot, marker: L.marker(at(link), { icon, keyboard: false, interactive: false }).addTo(map) });
        }
        const { dot, marker } = known.get(address);
        [dot.className, dot.title] = ["dot", title];
        dot.setAttribute("aria-label", title);
        dot.replaceChildren(document.createElement("i"), document.createElement("span"));
        dot.firstChild.className = link.getAttribute("class");
        dot.lastChild.textContent = link.querySelector("text")?.textContent ?? "";
        // Devices in trouble come last, and lie on top.
        marker.setLatLng(at(link)).setZIndexOffset(1000 * order);
      }
      turn();
      for (const address of left) { known.get(address).marker.remove(); known.delete(address); }
    };
    box.update(drawing);
  }

  for (const box of document.querySelectorAll("[data-track]")) draw(box);
  const overview = () => { for (const box of document.querySelectorAll("[data-devices]")) if (!box.update) devices(box); };
  addEventListener("patched", overview);
  overview();
})();
