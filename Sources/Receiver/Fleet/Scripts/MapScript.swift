// The script that draws a day's track with leaflet, from the read API, in place of the drawing.

enum MapScript {
    static let text: StaticString = """
        "use strict";
        (() => {
          if (!window.L) return;
          const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
          const two = value => String(value).padStart(2, "0");
          const time = ms => { const at = new Date(ms); return `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`; };
          // A day of one fix per second has nine pages.
          const pages = 10;

          async function fixes({ device, day, stream }) {
            const to = new Date(Date.parse(day + "T00:00:00Z") + 86400000).toISOString();
            let cursor, found = [];
            for (let page = 0; page < pages; page++) {
              const query = new URLSearchParams({ from: day, to, stream, limit: 10000 });
              if (cursor) query.set("cursor", cursor);
              const answer = await fetch(`/api/v1/devices/${device}/positions?${query}`);
              if (!answer.ok) throw new Error(answer.statusText);
              const { data, next } = await answer.json();
              data.time.forEach((at, index) => found.push({ time: Date.parse(at), at: [data.latitude[index], data.longitude[index]] }));
              cursor = next;
              if (!cursor) break;
            }
            return found.sort((a, b) => a.time - b.time);
          }

          // Splits a track where the position is unknown: five usual steps, and two minutes.
          function parts(fixes) {
            const steps = fixes.slice(1).map((fix, index) => fix.time - fixes[index].time).sort((a, b) => a - b);
            const most = Math.max(120000, 5 * (steps[steps.length >> 1] ?? 0)), found = [[]];
            fixes.forEach((fix, index) => {
              if (index && fix.time - fixes[index - 1].time > most) found.push([]);
              found.at(-1).push(fix);
            });
            return found;
          }

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
                label([n * step, bounds.getEast()], `${Math.abs(n * step).toFixed(digits)}° ${n < 0 ? "S" : "N"}`, "latitude");
              }
              for (let n = Math.ceil(bounds.getWest() / step); n * step < bounds.getEast(); n++) {
                L.polyline([[bounds.getSouth(), n * step], [bounds.getNorth(), n * step]], style).addTo(lines);
                label([bounds.getNorth(), n * step], `${Math.abs(n * step).toFixed(digits)}° ${n < 0 ? "W" : "E"}`, "longitude");
              }
            };
            map.on("moveend", draw);
            return draw;
          }

          function draw(box, fixes) {
            const found = parts(fixes), all = fixes.map(fix => fix.at);
            const place = document.createElement("div");
            place.className = "map leaflet";
            place.setAttribute("role", "application");
            place.setAttribute("aria-label", box.querySelector("svg").getAttribute("aria-label"));
            box.replaceChildren(place);
            // One finger and the wheel scroll the page.
            const map = L.map(place, { maxZoom: 19, scrollWheelZoom: false, dragging: !L.Browser.mobile, tap: false, attributionControl: false });
            map.fitBounds(L.latLngBounds(all).pad(.05), { maxZoom: 16, animate: false });
            L.control.scale({ maxWidth: 160 }).addTo(map);
            const { tiles } = box.dataset;
            if (tiles) {
              const { hostname } = new URL(tiles), source = L.control.attribution({ prefix: false }).addTo(map);
              source.addAttribution(/(^|[.])openstreetmap[.]org$/.test(hostname) ? "© OpenStreetMap contributors" : `Tiles: ${hostname}`);
              new Tiles(tiles).addTo(map);
            }
            const redraw = tiles ? () => {} : grid(map);
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
            redraw();
            matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
              for (const one of lines) one.setStyle({ color: css("--link") });
              for (const one of dots) one.setStyle({ color: css("--card"), fillColor: css("--link") });
              redraw();
            });
          }

          // If the fixes cannot be loaded, the drawing stays.
          for (const box of document.querySelectorAll("[data-track]"))
            fixes({ ...box.dataset, stream: box.dataset.track }).then(found => { if (found.length) draw(box, found); }).catch(() => {});
        })();

        """
}
