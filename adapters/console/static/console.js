// Behaviour that HTML and htmx lack: keyboard shortcuts, clearing the box after sending, the state of the connection.
"use strict";

let lastEventId = "";

// A reopened connection must continue where the last one ended, or its messages would arrive twice.
htmx.createEventSource = (url) => {
  const source = new URL(url, location.href);
  if (lastEventId) source.searchParams.set("after", lastEventId);
  return new EventSource(source, { withCredentials: true });
};

document.addEventListener("htmx:sseMessage", (event) => {
  lastEventId = event.detail.lastEventId || lastEventId;
});

function showConnection(text, open) {
  const note = document.querySelector(".connection");
  note.textContent = text;
  note.classList.toggle("open", open);
}

// A reload may already have brought the message of a live event.
document.addEventListener("htmx:oobBeforeSwap", (event) => {
  const { fragment, target } = event.detail;
  const brought = fragment.querySelector("article[id]");
  if (brought && brought.id !== target.id && document.getElementById(brought.id)) event.detail.shouldSwap = false;
});

document.addEventListener("htmx:sseOpen", () => showConnection("Live", true));
document.addEventListener("htmx:sseError", ({ detail: { source } }) => {
  showConnection("Reconnecting", false);
  // Refused for good: a session has ended. Loading the page signs in again, but what was typed must not be lost by it.
  const isTyped = [...document.querySelectorAll("textarea")].some((box) => box.value.trim());
  if (source?.readyState === EventSource.CLOSED && !isTyped) location.reload();
});

document.addEventListener("keydown", (event) => {
  const field = event.target.closest("textarea, input");
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing && field?.closest(".composer")) {
    event.preventDefault();
    if (field.value.trim()) field.form.requestSubmit();
  } else if (event.key === "/" && !field && !event.ctrlKey && !event.metaKey) {
    const box = document.querySelector(".foot textarea");
    if (box) event.preventDefault();
    box?.focus();
  } else if (event.key === "Escape" && field) {
    field.blur();
  }
});

function warn(sentence) {
  document.querySelector("#alert").textContent = sentence;
}

document.addEventListener("htmx:responseError", ({ detail: { xhr } }) => {
  const explained = xhr.getResponseHeader("Content-Type")?.startsWith("text/plain");
  warn(explained ? xhr.responseText : "Something went wrong. See Plumbline’s log.");
});

document.addEventListener("htmx:sendError", () => warn("Plumbline does not answer: is it still running?"));

// Clear the box when its text is sent, not when it has arrived: text typed meanwhile belongs to the next message.
const sent = new WeakMap();

document.addEventListener("htmx:beforeSend", ({ detail: { elt, xhr } }) => {
  const box = elt.matches("[data-clear]") && elt.querySelector("textarea");
  if (!box) return;
  sent.set(xhr, box.value);
  elt.reset();
  // Somebody who has just sent something wants to see it, wherever they had scrolled to.
  if (elt.closest(".foot")) document.querySelector(".scroll").scrollTop = 0;
});

document.addEventListener("htmx:afterRequest", ({ detail: { elt, xhr, successful } }) => {
  if (successful) return warn("");
  const box = sent.has(xhr) && elt.querySelector("textarea");
  if (box) box.value = [sent.get(xhr), box.value].filter(Boolean).join("\n");
});

document.querySelector(".sidebar [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });

document.addEventListener("toggle", (event) => {
  if (event.target.matches(".reply[open]")) event.target.querySelector("textarea").focus();
}, true);

// An open menu closes when something else is pressed.
document.addEventListener("click", (event) => {
  for (const menu of document.querySelectorAll(".menu[open]")) if (!menu.contains(event.target)) menu.open = false;
});

// A channel opens at the title of its latest incident, not at the end of the details below it.
if (!location.hash) document.querySelector("#messages > .thread:last-child .incident")?.closest(".message").scrollIntoView();
