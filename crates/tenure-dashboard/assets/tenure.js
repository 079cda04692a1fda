// The dashboard's one script. Without it every page and every button works; with it pages follow what happens.
"use strict";

const badge = document.getElementById("live");
let waiting = false;
let last = 0;
// Parts of the page whose rows would move under the reader: the newer part waits here until it may be shown.
const held = new Map();

// Fetches this page again and puts what differs in the place of what is there.
async function refresh() {
  if (waiting || document.hidden) return;
  waiting = true;
  try {
    // At most one a second, however much happens.
    await new Promise((done) => setTimeout(done, Math.max(0, last + 1000 - Date.now())));
    last = Date.now();
    const answer = await fetch(location.href, { headers: { accept: "text/html" } });
    if (answer.redirected && new URL(answer.url).pathname === "/sign-in") return location.reload();
    if (!answer.ok) return say("off", "The server does not answer");
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    for (const old of document.querySelectorAll("[data-live]")) {
      const now = fresh.querySelector(`[data-live="${old.dataset.live}"]`);
      held.delete(old);
      if (!now || now.innerHTML === old.innerHTML) continue;
      if (inUse(old) || (isRead(old) && rowsMove(old, now))) held.set(old, now);
      else replace(old, now);
    }
    tellHeld();
    say("on", "Live");
  } catch {
    say("off", "The server does not answer");
  } finally {
    waiting = false;
  }
}

// What was focused and how far tables were scrolled stays so.
const STOPS = "a, button, summary, [tabindex]";
function replace(old, now) {
  const place = [...old.querySelectorAll(STOPS)].indexOf(document.activeElement);
  const scrolled = [...old.querySelectorAll(".scroll, .picture")].map((part) => part.scrollLeft);
  old.replaceChildren(...now.childNodes);
  old.querySelectorAll(".scroll, .picture").forEach((part, at) => (part.scrollLeft = scrolled[at] ?? 0));
  if (place >= 0) old.querySelectorAll(STOPS)[place]?.focus({ preventScroll: true });
}

// Whether somebody is doing something there: it is not taken away under their hands.
function inUse(part) {
  const at = document.activeElement;
  if (at && at !== document.body && part.contains(at) && at.matches("input, select, textarea, summary")) return true;
  if (part.querySelector("details[open], input:checked, :popover-open")) return true;
  const chosen = document.getSelection();
  return chosen && !chosen.isCollapsed && part.contains(chosen.anchorNode);
}

// Whether the pointer is over rows or held down, or a row has the focus.
let isPressed = false;
function isRead(part) {
  const isOver = matchMedia("(hover: hover)").matches && part.querySelector("tbody:hover");
  const focused = document.activeElement?.closest("tbody");
  return isPressed || isOver || (focused && part.contains(focused));
}

// Rows by what they are about: the thing they link to, or else their first cell.
function rows(part) {
  const name = (row) => row.querySelector("a[href]")?.getAttribute("href") ?? row.cells[0]?.textContent;
  return [...part.querySelectorAll("tbody tr")].map(name);
}

function rowsMove(old, now) {
  return isPressed || rows(old).join("\n") !== rows(now).join("\n");
}

// One line for all parts that are held. It floats, so that it moves no row either.
const news = document.createElement("button");
news.type = "button";
news.id = "news";
news.hidden = true;
news.addEventListener("click", showHeld);
document.body.append(news);

function tellHeld() {
  let fresh = 0;
  let changed = 0;
  for (const [old, now] of held) {
    const known = new Set(rows(old));
    fresh += rows(now).filter((row) => !known.has(row)).length;
    changed += rowsMove(old, now) ? 1 : 0;
  }
  news.hidden = changed === 0;
  news.textContent = fresh > 0 ? `${fresh} new, click to show` : "Changed, click to show";
}

function showHeld() {
  for (const [old, now] of held) replace(old, now);
  held.clear();
  tellHeld();
}

// What was held because of the pointer is shown once it has gone; what is ticked or written stays.
addEventListener("pointerdown", () => (isPressed = true));
for (const end of ["pointerup", "pointercancel", "blur"]) addEventListener(end, () => (isPressed = false));
document.addEventListener("mouseout", (event) => {
  if (held.size === 0 || !event.target.closest("tbody") || event.relatedTarget?.closest("tbody, #news")) return;
  for (const [old, now] of held) {
    if (inUse(old) || isRead(old)) continue;
    held.delete(old);
    replace(old, now);
  }
  tellHeld();
});

function say(state, text) {
  if (!badge || badge.textContent === text) return;
  badge.className = `live ${state}`;
  badge.textContent = text;
}

// Browsers have few connections for one server: a page that nobody sees has none.
let source = null;
function listen() {
  if (document.hidden) {
    source?.close();
    source = null;
  } else if (!source || source.readyState === EventSource.CLOSED) {
    source = new EventSource("/live");
    source.addEventListener("hello", () => say("on", "Live"));
    source.addEventListener("changed", refresh);
    source.addEventListener("tick", refresh);
    source.addEventListener("error", () => say("off", "Not live: trying again"));
  }
}
if (badge && document.querySelector("[data-live]")) {
  listen();
  document.addEventListener("visibilitychange", () => (listen(), refresh()));
  addEventListener("pagehide", () => source?.close());
  // A server with too many listeners sends this one away: it asks again, and looks meanwhile.
  setInterval(() => source?.readyState === EventSource.CLOSED && (listen(), refresh()), 10_000);
}

// A slash goes to the search.
document.addEventListener("keydown", (event) => {
  if (event.key === "/" && !event.target.closest("input, select, textarea")) {
    event.preventDefault();
    document.getElementById("q")?.focus();
  }
});
// One tick for all.
document.addEventListener("change", (event) => {
  const all = event.target.closest("input[data-all]");
  if (all) for (const one of document.querySelectorAll(`input[name="${all.dataset.all}"]`)) one.checked = all.checked;
});
