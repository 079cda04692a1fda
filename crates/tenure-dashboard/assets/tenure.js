// The dashboard's one script. Without it every page and every button works; with it pages follow what happens.
"use strict";

const badge = document.getElementById("live");
let waiting = false;
let last = 0;

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
      if (now && now.innerHTML !== old.innerHTML && !inUse(old)) replace(old, now);
    }
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
