// Reads Adaptive Cards (a JSON list) and writes what Microsoft's own library says is wrong with each, as a JSON list.
"use strict";

const { AdaptiveCard, HostConfig, SerializationContext, Versions } = require("adaptivecards");

// Teams shows six buttons of a card at once; those of mode "secondary" are in the menu beside them, however many. The
// library shows them there too, and counts them all the same when it validates.
const SHOWN = 6;

function teams(actions) {
  const inMenu = actions.filter((action) => action.mode === "secondary").length;
  return new HostConfig({ actions: { maxActions: SHOWN + inMenu } });
}

// The library does not know the code box of Teams, and shows what stands in for it: this is what it reads here.
const fallback = (_, value) => (value?.type === "CodeBlock" ? value.fallback ?? value : value);

const cards = JSON.parse(require("node:fs").readFileSync(0, "utf8"), fallback);
const problems = cards.map((content) => {
  const context = new SerializationContext(Versions.v1_5);
  const card = new AdaptiveCard();
  card.hostConfig = teams(content.actions ?? []);
  card.parse(content, context);
  const found = [];
  for (let index = 0; index < context.eventCount; index++) found.push(context.getEventAt(index).message);
  return found.concat(card.validateProperties().validationEvents.map((event) => event.message));
});
process.stdout.write(JSON.stringify(problems));
