/**
 * The script of all pages. Every page works without it. It shows times in the reader's zone and how
 * long ago they were, copies texts, refreshes parts of a page, and takes a message away again.
 */
export const pageScript = `
const units = [["day", 86400], ["hour", 3600], ["minute", 60], ["second", 1]];
const lang = document.documentElement.lang;
const ago = new Intl.RelativeTimeFormat(lang, { numeric: "auto", style: "short" });
const whole = new Intl.DateTimeFormat(lang, { dateStyle: "medium", timeStyle: "long" });
const clock = new Intl.DateTimeFormat(lang, { timeStyle: "short" });
const day = new Intl.DateTimeFormat(lang, {
  month: "short", day: "numeric", hour: "2-digit", minute: "2-digit",
});
const stamp = new Intl.DateTimeFormat(lang, {
  month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", second: "2-digit",
  hourCycle: "h23",
});
const withYear = new Intl.DateTimeFormat(lang, { dateStyle: "medium" });
const showTimes = () => {
  for (const time of document.querySelectorAll("time[data-show]")) {
    const at = new Date(time.dateTime);
    if (Number.isNaN(at.getTime())) continue;
    const seconds = Math.round((at - Date.now()) / 1000);
    const [unit, size] = units.find(([, size]) => Math.abs(seconds) >= size) || units[3];
    const age = Math.abs(seconds);
    const text = time.dataset.show === "clock" ? clock.format(at)
      : time.dataset.show === "stamp" && age < 300 * 86400 ? stamp.format(at)
      : age > 300 * 86400 ? withYear.format(at)
      : age > 86400 ? day.format(at) : ago.format(Math.trunc(seconds / size), unit);
    if (time.textContent !== text) time.textContent = text;
    time.title = whole.format(at);
  }
};
const showCopies = () => {
  for (const button of document.querySelectorAll("button[data-copy][hidden]")) {
    button.hidden = false;
  }
};
document.addEventListener("click", async ({ target }) => {
  const button = target instanceof Element && target.closest("button[data-copy]");
  if (!button) return;
  const source = document.getElementById(button.dataset.copy);
  await navigator.clipboard.writeText(source.textContent.trim());
  const label = button.lastElementChild;
  const before = label.textContent;
  label.textContent = button.dataset.copied;
  setTimeout(() => { label.textContent = before; }, 1500);
});
const refresh = async (parts) => {
  if (document.hidden) return;
  const answer = await fetch(location.href, { headers: { "x-look": "1" } }).catch(() => null);
  if (!answer || !answer.ok || answer.redirected) return;
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
  for (const then of parts) {
    const now = fresh.getElementById(then.id);
    const isUsed = then.contains(document.activeElement);
    if (!now || isUsed || now.innerHTML === then.dataset.was) continue;
    then.dataset.was = now.innerHTML;
    then.replaceChildren(...now.childNodes);
  }
  showTimes();
};
const parts = [...document.querySelectorAll("[data-refresh]")];
for (const part of parts) part.dataset.was = part.innerHTML;
if (parts.length > 0) {
  setInterval(() => refresh(parts), Number(parts[0].dataset.refresh) * 1000);
}
for (const other of document.querySelectorAll("input[data-instead-of]")) {
  const tiles = [...other.form.elements].filter(({ name, type }) =>
    name === other.dataset.insteadOf && type === "radio");
  other.addEventListener("input", () => { for (const tile of tiles) tile.checked = false; });
  for (const tile of tiles) tile.addEventListener("change", () => { other.value = ""; });
}
const toast = document.querySelector(".toast");
if (toast) setTimeout(() => { if (!toast.matches(":hover")) toast.remove(); }, 6000);
showTimes();
showCopies();
setInterval(showTimes, 15000);
`;
