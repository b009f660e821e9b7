// The script that plays an hour's chunks as one, without their overlaps.

enum SoundScript {
    static let text: StaticString = """
        "use strict";
        (() => {
          const place = document.getElementById("hour"), two = value => String(value).padStart(2, "0");
          const chunks = [...document.querySelectorAll("tr[data-start]")].map(row => ({
            row, start: +row.dataset.start, end: +row.dataset.end, address: row.querySelector("audio").src }));
          if (!place || !chunks.length) return;
          // `skip`: milliseconds at its beginning that the chunks before it have played.
          let over = -Infinity;
          for (const chunk of chunks) {
            chunk.skip = Math.max(0, over - chunk.start);
            over = Math.max(over, chunk.end);
          }
          const parts = chunks.filter(chunk => chunk.end - chunk.start > chunk.skip);
          if (!parts.length) return;
          const first = parts[0].start, clock = at => {
            const time = new Date(at);
            return `${two(time.getHours())}:${two(time.getMinutes())}:${two(time.getSeconds())}`;
          };

          const button = place.appendChild(document.createElement("button"));
          const label = place.appendChild(document.createElement("label"));
          const name = label.appendChild(document.createElement("span"));
          const slider = label.appendChild(document.createElement("input"));
          const words = place.appendChild(document.createElement("span"));
          [slider.type, slider.min, slider.max, slider.step, slider.value] = ["range", 0, over - first, 1000, 0];
          [name.textContent, name.className] = ["Time in the hour", "hidden"];
          words.className = "at";
          place.hidden = false;

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
            slider.value = at - first;
            words.textContent = clock(at);
            slider.setAttribute("aria-valuetext", words.textContent);
            button.textContent = isPlaying ? "Pause" : "Play the hour";
            parts.forEach((part, index) => part.row.classList.toggle("playing", index === current));
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
            one.ontimeupdate = () => { if (isCurrent() && isPlaying) show(parts[current].start + one.currentTime * 1000); };
          });
          button.onclick = () => {
            isPlaying = !isPlaying;
            if (isPlaying && !player().src) return go(current);
            if (isPlaying) player().play().catch(() => {}); else player().pause();
            show(parts[current].start + player().currentTime * 1000);
          };
          slider.oninput = () => seek(first + +slider.value);

          const at = Number(new URLSearchParams(location.search).get("at"));
          if (at) seek(at); else show(first);
        })();

        """
}
