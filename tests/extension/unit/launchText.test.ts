import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { placeInLaunchText } from "../../../extension/src/core/launchText";

const TEXT = `{
  // two of them
  "configurations": [
    { "name": "first", "program": "a.py", "env": { "A": 1 } },
    { "program": "b.py", "name" : "second (\\"2\\")", "pathMappings": [{ "localRoot": 3 }], },
  ]
}`;

/** The line on which a key is found, and what is there. */
function found(name: string, key?: string): string | undefined {
  const place = placeInLaunchText(TEXT, name, key);
  return place && `${TEXT.slice(0, place.start).split("\n").length}: ${TEXT.slice(place.start, place.end)}`;
}

describe("placeInLaunchText", () => {
  it("finds the key of the right configuration", () => {
    assert.equal(found("first", "program"), '4: "program"');
    assert.equal(found('second ("2")', "program"), '5: "program"');
  });

  it("finds a key within a setting", () => {
    assert.equal(found("first", "env.A"), '4: "A"');
    assert.equal(found('second ("2")', "pathMappings[0].localRoot"), '5: "localRoot"');
    assert.equal(found('second ("2")', "pathMappings[0]"), '5: "pathMappings"');
  });

  it("finds the name where the key is not written", () => {
    assert.equal(found("first", "python"), '4: "name"');
    assert.equal(found("first"), '4: "name"');
  });

  it("finds nothing of a configuration that is not there", () => {
    assert.equal(found("third", "program"), undefined);
  });
});
