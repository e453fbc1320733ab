/**
 * Colors, type, spaces and corners, for light and dark mode. Text has a contrast of at least 4.5 to
 * 1 on every ground that it stands on. Every color of a state is accompanied by a word or a shape.
 */
export const theme = `
@font-face { font-family: "Inter"; font-weight: 100 900; font-display: swap;
  src: url("inter_latin.woff2") format("woff2");
  unicode-range: U+0000-00FF, U+0131, U+0152-0153, U+02C6, U+02DA, U+02DC, U+2000-206F, U+20AC,
    U+2122, U+2190-2193, U+2212, U+2215; }
@font-face { font-family: "Inter"; font-weight: 100 900; font-display: swap;
  src: url("inter_latin_ext.woff2") format("woff2");
  unicode-range: U+0100-0130, U+0132-0151, U+0154-02BA, U+1E00-1E9F, U+1EF2-1EFF, U+20A0-20AB,
    U+20AD-20C0; }
:root { color-scheme: light dark;
  --font: "Inter", ui-sans-serif, system-ui, -apple-system, "Segoe UI", Roboto, sans-serif;
  --mono: ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace;
  --canvas: light-dark(#f6f7f9, #0d0f12);
  --surface: light-dark(#ffffff, #15181d);
  --sunken: light-dark(#f1f3f6, #1b1f26);
  --hover: light-dark(#eceff3, #20252d);
  --line: light-dark(#e4e7ec, #272c35);
  --line-strong: light-dark(#c6ccd5, #3b424e);
  --text: light-dark(#161b23, #eef0f4);
  --muted: light-dark(#586170, #a1a9b7);
  --accent: light-dark(#1d4fd7, #8fb2ff);
  --accent-strong: light-dark(#173fae, #b1c9ff);
  --accent-soft: light-dark(#eaf0ff, #172341);
  --on-accent: light-dark(#ffffff, #0a1633);
  --good: light-dark(#0f6b3b, #72d69e);
  --good-soft: light-dark(#e5f5ec, #10291c);
  --warn: light-dark(#875000, #efbd68);
  --warn-soft: light-dark(#fdf3e0, #2c220e);
  --bad: light-dark(#b0231b, #ff9b92);
  --bad-soft: light-dark(#fdecea, #341412);
  --on-bad: light-dark(#ffffff, #3a0905);
  --series-1: light-dark(#1d4fd7, #8fb2ff);
  --series-2: light-dark(#b25a00, #f2b072);
  --series-3: light-dark(#0f7a52, #79d9ac);
  --before: light-dark(#98a1b0, #6b7482);
  --radius: 0.5rem; --radius-large: 0.75rem;
  --shadow: 0 1px 2px light-dark(rgb(22 27 35 / 6%), rgb(0 0 0 / 40%));
  --shadow-large: 0 1px 2px light-dark(rgb(22 27 35 / 6%), rgb(0 0 0 / 40%)),
    0 12px 32px light-dark(rgb(22 27 35 / 8%), rgb(0 0 0 / 40%)); }
`;
