// The script that keeps an open page up to date; without it a page works but is not updated.

enum LiveScript {
    static let text: StaticString = """
        "use strict";
        (() => {
          const mark = document.getElementById("live");
          let source, timer, isFirst;

          // Changes only what differs, so that focus and scroll position stay.
          function patch(old, fresh) {
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
            const [time, shown] = [page, document].map(one => one.querySelector(".time"));
            // Skips updates while text is selected, and a first one that is older than this page;
            // later, an older time means that the clock was set back.
            const isOld = isFirst && time?.textContent < shown.textContent;
            isFirst = false;
            if (!time || isOld || !getSelection().isCollapsed) return;
            const held = document.activeElement, link = held?.getAttribute("href");
            document.title = page.title;
            patch(shown, time);
            patch(document.querySelector("main"), page.querySelector("main"));
            if (!link || (held.isConnected && held.getAttribute("href") === link)) return;
            // The table and the map each have such a link.
            [...document.querySelectorAll("a")]
              .find(one => one.nodeName === held.nodeName && one.getAttribute("href") === link)
              ?.focus({ preventScroll: true });
          }

          function say(text) {
            mark.textContent = text;
            mark.className = text === "live" ? "soft" : "late";
          }

          function start() {
            if (source || document.hidden) return;
            source = new EventSource("/live" + location.pathname);
            source.onopen = () => { isFirst = true; say("live"); };
            source.onmessage = event => show(event.data);
            source.onerror = () => {
              say("not live");
              // Otherwise the browser reconnects by itself.
              if (source.readyState === EventSource.CLOSED) timer = setTimeout(ask, 60000);
            };
          }

          function stop() {
            clearTimeout(timer);
            source?.close();
            source = undefined;
            say("");
          }

          // If live updates are refused, polls once a minute.
          async function ask() {
            stop();
            try {
              const answer = await fetch(location.pathname);
              // Logged out.
              if (answer.redirected) return location.reload();
              if (answer.ok) show(await answer.text());
            } catch {}
            start();
          }

          // A hidden page does not occupy a live connection.
          document.addEventListener("visibilitychange", () => document.hidden ? stop() : start());
          start();
        })();

        """
}
