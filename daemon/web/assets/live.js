// Shows the page again when something happens in the lab. The server renders; this only asks for it and puts it in place.
"use strict";

const connection = document.getElementById("connection");
// Progress is no event: while something runs, the page is asked for this often.
const REFRESH_MS = 3000;
// Events that come together are shown together.
const GATHER_MS = 150;

let timer = null;
let isAsking = false;
let isStale = false;

function say(words, state) {
  if (connection.textContent !== words) connection.textContent = words;
  connection.dataset.state = state;
}

async function refresh() {
  if (isAsking) {
    isStale = true;
    return;
  }
  isAsking = true;
  isStale = false;
  try {
    const response = await fetch(location.href, { headers: { Accept: "text/html" } });
    if (response.redirected) {
      location.reload();
      return;
    }
    const text = await response.text();
    const shown = new DOMParser().parseFromString(text, "text/html").getElementById("content");
    const here = document.getElementById("content");
    // Who is reading or typing is not disturbed by what has not changed.
    if (response.ok && shown && shown.innerHTML !== here.innerHTML && !here.contains(document.activeElement)) {
      here.replaceWith(document.adoptNode(shown));
    }
  } catch {
    // The stream says that the lab is away, and when it is back.
  } finally {
    isAsking = false;
    if (isStale) schedule();
  }
}

function schedule() {
  if (timer === null) {
    timer = setTimeout(() => {
      timer = null;
      refresh();
    }, GATHER_MS);
  }
}

function listen() {
  const events = new EventSource("/api/v1/events");
  events.onopen = () => {
    say("live", "live");
    schedule();
  };
  events.onmessage = schedule;
  events.onerror = () => {
    say("the lab does not answer; trying again", "away");
    // A browser gives up after an answer that is no stream.
    if (events.readyState === EventSource.CLOSED) setTimeout(listen, REFRESH_MS);
  };
}

listen();
setInterval(() => {
  if (!document.hidden && document.querySelector("main .running, main .busy, main progress")) schedule();
}, REFRESH_MS);
