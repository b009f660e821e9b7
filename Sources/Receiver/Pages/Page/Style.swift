// The page's style sheet, without external fonts or images.

enum Style {
    /// The icon: a path and a point on it.
    static let icon: StaticString = """
        <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="7" fill="#1e6b3a"/>
        <path d="M5 25c6-1 5-9 11-9s5-8 11-9" fill="none" stroke="#fff" stroke-width="3" stroke-linecap="round"/>
        <circle cx="16" cy="16" r="4" fill="#fff"/></svg>
        """

    static let sheet: StaticString = """
        :root {
          color-scheme: light dark;
          --paper: #fbfaf7; --card: #fff; --ink: #1b1f24; --soft: #5b6470; --line: #d9d6cf; --link: #0b5cad;
          --late: #b3261e; --act: #a84300; --look: #7a5b00; --fine: #1e6b3a; --off: #5b6470;
        }
        @media (prefers-color-scheme: dark) {
          :root {
            --paper: #14171a; --card: #1c2024; --ink: #e6e4df; --soft: #a0a8b2; --line: #343a41; --link: #7db8f5;
            --late: #ff8f85; --act: #ffab70; --look: #e3c158; --fine: #7ccf97; --off: #a0a8b2;
          }
        }
        * { box-sizing: border-box; }
        body { margin: 0; background: var(--paper); color: var(--ink); font: 16px/1.45 system-ui, sans-serif; }
        header, main { max-width: 1280px; margin: 0 auto; padding: 0 1rem; }
        header { display: flex; flex-wrap: wrap; gap: .25rem 1.5rem; align-items: center; padding-top: .75rem; padding-bottom: .75rem;
          border-bottom: 1px solid var(--line); }
        header .home { font-weight: 650; color: var(--ink); text-decoration: none; font-size: 1.1rem; }
        header .time { color: var(--soft); }
        header form { margin-left: auto; }
        h1 { font-size: 1.5rem; line-height: 1.2; margin: 1.25rem 0 .5rem; overflow-wrap: anywhere; }
        h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; }
        p { margin: .4rem 0; max-width: 70ch; }
        a { color: var(--link); }
        a:focus-visible, button:focus-visible, input:focus-visible, select:focus-visible, [tabindex]:focus-visible {
          outline: 3px solid var(--link); outline-offset: 2px; border-radius: 3px; }
        .skip { position: absolute; left: -999rem; }
        .skip:focus { left: 1rem; top: .5rem; background: var(--card); padding: .5rem; z-index: 1; }
        button { font: inherit; color: var(--ink); background: var(--card); border: 1px solid var(--line); border-radius: 6px;
          padding: .5rem .9rem; min-height: 44px; cursor: pointer; }
        button:hover { border-color: var(--soft); }
        .soft { color: var(--soft); }
        .count { display: flex; flex-wrap: wrap; gap: .5rem; list-style: none; padding: 0; margin: .75rem 0; }
        .state { display: inline-block; font-weight: 650; white-space: nowrap; border: 1.5px solid currentColor;
          border-radius: 999px; padding: .05rem .6rem; font-size: .9rem; }
        .late { color: var(--late); } .critical { color: var(--act); } .degraded { color: var(--look); }
        .healthy { color: var(--fine); } .revoked, .waiting { color: var(--off); }
        .reasons { list-style: none; margin: .2rem 0 0; padding: 0; font-size: .95rem; }
        .wide { overflow-x: auto; background: var(--card); border: 1px solid var(--line); border-radius: 8px; }
        table { border-collapse: collapse; width: 100%; }
        th, td { text-align: left; vertical-align: top; padding: .5rem .75rem; border-bottom: 1px solid var(--line); }
        tbody tr:last-child > * { border-bottom: 0; }
        thead th { font-size: .85rem; font-weight: 600; color: var(--soft); white-space: nowrap; }
        tbody th { font-weight: 600; overflow-wrap: anywhere; min-width: 8rem; }
        tbody td + th { min-width: 12rem; }
        td { overflow-wrap: anywhere; }
        td[data-label=Source] { min-width: 6rem; }
        td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
        time, .place { white-space: nowrap; font-variant-numeric: tabular-nums; }
        .facts { display: grid; grid-template-columns: repeat(auto-fill, minmax(10.5rem, 1fr)); gap: .75rem 1.5rem; margin: 1rem 0;
          background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: 1rem; }
        .facts > div { min-width: 0; }
        dt { color: var(--soft); font-size: .85rem; }
        dd { margin: 0; overflow-wrap: anywhere; }
        .detail { margin: 0; padding: 0; list-style: none; display: flex; flex-wrap: wrap; gap: 0 1rem; }
        .detail span { color: var(--soft); }
        .map { display: block; width: 100%; max-width: 900px; height: auto; background: var(--card); border: 1px solid var(--line);
          border-radius: 8px; }
        .map text { font-size: 9px; fill: var(--soft); }
        .map .name { font-size: 10px; fill: var(--ink); }
        .map .grid { stroke: var(--line); stroke-width: 1; }
        .map .scale { stroke: var(--ink); stroke-width: 1.5; }
        .map circle { fill: currentColor; stroke: var(--card); stroke-width: 1.5; }
        .map a:focus-visible { outline: none; }
        .leaflet .dot { position: absolute; transform: translate(-12px, -50%); display: flex; align-items: center; gap: 2px; min-width: 24px;
          min-height: 24px; white-space: nowrap; text-decoration: none; color: var(--ink); }
        .leaflet .dot.left { transform: translate(calc(12px - 100%), -50%); flex-direction: row-reverse; }
        .leaflet .dot i { flex: none; width: 16px; height: 16px; margin: 4px; border-radius: 50%; background: currentColor;
          border: 2px solid var(--card); }
        .leaflet .dot span:not(:empty) { background: var(--card); padding: 0 .3rem; border-radius: 4px; }
        .leaflet .dot:hover span { text-decoration: underline; }
        .leaflet .dot:focus-visible { outline: 3px solid var(--link); }
        .map a:focus-visible circle { stroke: var(--link); stroke-width: 4; }
        .map .track { fill: none; stroke: var(--link); stroke-width: 2; stroke-linejoin: round; stroke-linecap: round; }
        .map .hole { stroke: var(--late); stroke-width: 1.5; stroke-dasharray: 4 4; }
        .map circle.start, .map circle.end { fill: var(--link); }
        .ways, .days { display: flex; flex-wrap: wrap; gap: .5rem 1.5rem; list-style: none; padding: 0; margin: .5rem 0; }
        .timeline th { font-weight: 400; border: 0; padding: .2rem .75rem .2rem 0; width: 1%; white-space: nowrap; }
        .timeline td, .timeline thead th:last-child { border: 0; padding: .2rem 0; width: 99%; }
        .timeline thead th { font-size: .85rem; }
        .hours { display: flex; justify-content: space-between; }
        .hours time { width: 11ch; white-space: normal; text-align: center; }
        .hours time:first-child { text-align: left; }
        .hours time:last-child { text-align: right; }
        .strip { display: block; width: 100%; height: 1.3rem; background: var(--card); border: 1px solid var(--line); }
        .plots { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(20rem, 100%), 1fr)); gap: .75rem 1.5rem; }
        figure { margin: 0; min-width: 0; }
        figcaption { overflow-wrap: anywhere; }
        figcaption span { display: block; font-size: .9rem; }
        figure[data-levels], .plots .wrong { grid-column: 1 / -1; }
        .graph { width: 100%; height: 10rem; touch-action: pan-y; }
        .hover { min-height: 1.45em; font-size: .9rem; font-variant-numeric: tabular-nums; }
        .dygraph-axis-label, .dygraph-label { color: var(--soft); }
        .dygraph-label { font-size: .8rem; font-weight: 400; }
        .range { display: flex; flex-wrap: wrap; gap: .5rem; align-items: center; margin: .75rem 0; }
        .range[hidden], .hour[hidden] { display: none; }
        [aria-pressed=true] { border-color: var(--link); box-shadow: inset 0 0 0 1px var(--link); }
        .map.leaflet { max-width: none; height: min(70vh, 34rem); isolation: isolate; font: inherit; }
        .leaflet .leaflet-bar a, .leaflet .leaflet-tooltip, .leaflet .leaflet-control-attribution,
          .leaflet .leaflet-control-scale-line { background: var(--card); color: var(--ink); border-color: var(--soft); text-shadow: none; }
        .leaflet .leaflet-bar a { width: 44px; height: 44px; line-height: 44px; }
        .leaflet .leaflet-disabled { color: var(--soft); }
        .degrees { color: var(--soft); font-size: .75rem; white-space: nowrap; }
        .degrees.latitude { width: 5.5rem !important; margin-left: -5.75rem !important; text-align: right; }
        .degrees.longitude { margin-left: 3px !important; }
        .hour { display: flex; flex-wrap: wrap; gap: .5rem 1rem; align-items: center; background: var(--paper); padding: .5rem 0; }
        .hour button { min-width: 8.5rem; }
        .at { font-variant-numeric: tabular-nums; }
        .axes { flex: 1 0 100%; display: grid; grid-template-columns: 3.5rem minmax(0, 1fr); gap: .15rem .5rem; font-size: .8rem;
          color: var(--soft); font-variant-numeric: tabular-nums; }
        .axes[hidden] { display: none; }
        .axes label { position: relative; display: block; height: 3.5rem; background: var(--card); border: 1px solid var(--line); }
        .axes.spectrum label { height: 11rem; background: #000; }
        .axes canvas { display: block; width: 100%; height: 100%; }
        .axes i { position: absolute; top: 0; bottom: 0; left: 0; width: 2px; margin-left: -1px; background: var(--link); pointer-events: none; }
        .spectrum i { background: #fff; }
        .axes input { position: absolute; inset: 0; width: 100%; height: 100%; margin: 0; opacity: 0; cursor: crosshair; }
        .axes input::-webkit-slider-thumb { appearance: none; width: 1px; }
        .axes label:has(:focus-visible) { outline: 3px solid var(--link); outline-offset: 2px; }
        .units { display: flex; flex-direction: column; justify-content: space-between; text-align: right; }
        .times { grid-column: 2; display: flex; justify-content: space-between; }
        .playing th, tr:target th { box-shadow: inset 4px 0 0 var(--link); }
        .beacon { margin: 1rem 0; padding-top: .25rem; border-top: 1px solid var(--line); break-inside: avoid; }
        h3 { font-size: 1rem; margin: .5rem 0 0; overflow-wrap: anywhere; }
        .pause td { color: var(--late); text-align: center; }
        audio { vertical-align: middle; max-width: 100%; }
        summary { cursor: pointer; min-height: 44px; line-height: 44px; }
        .hidden { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
        .strip .cover, .legend .cover { fill: var(--fine); }
        .strip .loss, .legend .loss { fill: var(--late); }
        .strip .off, .legend .off { fill: var(--soft); }
        .strip .down, .legend .down { fill: var(--ink); }
        .legend { display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; list-style: none; padding: 0; margin: .5rem 0; font-size: .9rem; }
        .legend svg { width: 1.5rem; height: .75rem; background: var(--card); border: 1px solid var(--line); }
        .strip .later { fill: var(--line); }
        .under { color: var(--soft); font-weight: 400; font-size: .85rem; }
        th .under, h1 .under, h3 .under { display: block; }
        .act { font-weight: 400; font-size: .9rem; }
        .filter { display: flex; flex-wrap: wrap; gap: .5rem 1rem; align-items: end; margin: .75rem 0; }
        .filter label, .names label { display: block; font-size: .9rem; color: var(--soft); }
        .names label { margin-top: .75rem; }
        .filter input, .filter select, .names input { font: inherit; min-height: 44px; padding: .4rem .6rem; color: var(--ink);
          background: var(--card); border: 1px solid var(--soft); border-radius: 6px; max-width: 100%; }
        .names { max-width: 36rem; margin-bottom: 1.25rem; }
        .names input { width: 100%; }
        .names button { margin-top: 1rem; }
        .login { max-width: 26rem; margin: 12vh auto 0; background: var(--card); border: 1px solid var(--line); border-radius: 10px;
          padding: 1.5rem; }
        .login h1 { margin-top: 0; }
        .login label { display: block; margin: .75rem 0 .25rem; }
        .login input { font: inherit; width: 100%; min-height: 44px; padding: .4rem .6rem; color: var(--ink);
          background: var(--paper); border: 1px solid var(--soft); border-radius: 6px; }
        .login button { margin-top: 1rem; width: 100%; }
        .login button, .names button { background: var(--link); border-color: var(--link); color: var(--paper); font-weight: 600; }
        .wrong { color: var(--late); font-weight: 600; }
        @media (max-width: 760px) {
          .fold thead { position: absolute; left: -999rem; }
          .fold, .fold tbody, .fold tr { display: block; }
          .fold tr { padding: .75rem; border-bottom: 1px solid var(--line); }
          .fold tr:last-child { border-bottom: 0; }
          .fold th, .fold td { display: block; border: 0; padding: .1rem 0; text-align: left; }
          .fold tbody th { font-size: 1.05rem; }
          .fold td.number { text-align: left; }
          .fold td[data-label]::before { content: attr(data-label) ": "; color: var(--soft); }
          .fold td:empty { display: none; }
          .fold br { display: none; }
          .fold .playing th, .fold tr:target th { padding-left: .6rem; }
          header form { order: 1; } header .time, header [role=status] { order: 2; }
          .facts { grid-template-columns: 1fr 1fr; gap: .75rem 1rem; padding: .75rem; font-size: .9rem; }
          .axes .times span:nth-child(even), .hours time:nth-child(even) { display: none; }
          .axes.spectrum label { height: 8rem; }
          .timeline, .timeline thead, .timeline tbody, .timeline tr { display: block; }
          .timeline th, .timeline td { display: block; width: auto; white-space: normal; }
          .timeline thead th:first-child { position: absolute; left: -999rem; }
          .map circle { r: 9px; }
          .map text { font-size: 17px; }
          .map .name { font-size: 19px; }
        }
        @media (min-width: 761px) and (min-height: 45rem) {
          .hour { position: sticky; top: 0; z-index: 1; }
          tr:target { scroll-margin-top: 22rem; }
        }
        @media print {
          :root { color-scheme: light; --paper: #fff; --card: #fff; --ink: #000; --soft: #333; --line: #999; --link: #000;
            --late: #000; --act: #000; --look: #000; --fine: #000; --off: #000; }
          header form, .skip, .screen, #live { display: none; }
          body { font-size: 11pt; }
          tr, .map, .facts { break-inside: avoid; }
          thead { display: table-header-group; }
          .wide { overflow: visible; border: 0; }
        }
        """
}
