/**
 * What a node and its client library do that a store has to survive, as it was seen at a node of 23.10.6, and the tests that show that
 * this store does. A test is named by its file and by words of its title. Not here: figures of speed, which no test can keep.
 */
import { readdirSync, readFileSync } from "node:fs"
import { expect, it } from "vitest"

type Shown = readonly [file: string, ...words: ReadonlyArray<string>]

/** The contract that every event store passes: several files. */
const SUITE = "../../testing/src/suites/"

const facts: ReadonlyArray<readonly [fact: string, ...shown: ReadonlyArray<Shown>]> = [
  // Two ways to append
  [
    "The batch call has no deadline: what is stuck stays so for ever",
    ["Appends", "that was lost", "is given up in time, even where nobody may interrupt the caller"],
    ["Connections", "a call that never ends is given up by our own clock"]
  ],
  [
    "A host that is frozen, or a connection that fell silent, is noticed after 11 to 20 s",
    ["Sockets", "a connection that fell silent after it stood", "a node that takes connections and says nothing", "closing is soon over"]
  ],
  [
    "Unary appends with consecutive revisions do not keep their order",
    ["Facts", "to consecutive revisions, a hundred at once, keeps its place"],
    ["Appends", "to one stream are sent one after another"]
  ],
  [
    "Another client of the process that is disposed rejects what is under way, throws where nobody listens, and lets later appends hang",
    ["Connections", "that is disposed under load breaks a third one, and nothing of ours"]
  ],
  ["A node that is killed under load rejects promises that nobody holds", ["Kill", "kill -9 under load"]],
  [
    "Disposing a client breaks off what is under way",
    ["Appends", "leaves the calls of the old one alone"],
    ["Connections", "answers what was sent first"]
  ],
  [
    "After an answer that did not come only a fresh client is sure to work",
    ["Appends", "lets a fresh client take over"],
    ["Sockets", "is left for a fresh one"]
  ],

  // Appends
  [
    "Without an expected revision any will do, and ids are compared from memory",
    ["Appends", "are at an exact revision, whoever sends them"]
  ],
  [
    "At an exact revision a repeated append is that success, also after a crash and after later events",
    ["Facts", "sent again is answered as the success it was after 4,000 later events"],
    ["Appends", "the identical batch settles it", "and that arrives after it was sent again is there once"],
    ["Kill", "batches in doubt"],
    ["Aggregate", "an aggregate settles its doubts"]
  ],
  [
    "It compares ids only; the same id at a new revision is stored twice",
    ["Facts", "sent again compares ids only", "at a new revision it is written again"]
  ],
  ["A part at its own revision succeeds, more or another order does not", ["Facts", "of a part at its own revision is that success"]],
  [
    "A repeated append whose events were truncated or deleted has no position",
    ["Appends", "without a position, because what it wrote was"]
  ],
  ["An append of nothing checks the revision", ["Protocol", "an append without events checks the revision"]],
  [
    "throwOnAppendFailure: false hides the true revision",
    ["ConnectionString", "throwOnAppendFailure=false"],
    ["Facts", `_tag: "WrongRevision", actual: 1`]
  ],
  [
    "At most 1 MiB in an append; 17 MB end the connection and all that is under way",
    ["Facts", "over a megabyte is refused by its type before it is sent", "over a megabyte that gets as far as the node"],
    ["Fault", "an append that is too large", "a message that was too much for the connection"],
    [SUITE, "accepts an append of the largest size, and writes nothing of a larger one"]
  ],
  [
    "JSON.stringify meets a bigint and the promise never settles; what is no JSON comes back as text",
    ["Facts", "come back as they were written"],
    [SUITE, "keeps any JSON byte for byte"]
  ],
  ["An empty name or type is an unknown error", ["Appends", "no UUID, no name, no type, no text"]],

  // Errors
  [
    "Some errors have a type and no code, some a code and no type",
    ["Fault", "a code and no type, while it connects again", "an error of the batch call: words alone"]
  ],
  [
    "A node that stops in good order ends subscriptions with 13, and goes on taking appends for a while",
    ["Subscriptions", "the node stops in good order"]
  ],
  [
    "kill -9: 14; a subscription gets an error, and no end",
    ["Subscriptions", "when the connection breaks"],
    ["Kill", "one at each host who follows"]
  ],
  [
    "A node that is not ready says so by words alone to an append, by 14 to a read",
    ["Appends", "that comes to a node which is not ready"],
    ["Subscriptions", `"silent", "drop", "notReady"`],
    ["Fault", "a node that is not ready, for an append: a type and no code"]
  ],
  ["A client whose clock is behind is refused by deadline", ["Appends", "by a node that is behind its client's clock, or ahead of it"]],
  [
    "What the server can do is asked once, and a failed answer is kept for ever",
    ["Connections", "that failed, and that the client would keep as failed, is none of ours"]
  ],

  // Reading and following
  [
    "A connection takes 100 calls; the next one hangs without a word",
    [
      "Connections",
      "are never open at once: 500 appends and reads",
      "are not taken by 110 subscriptions",
      "The 101st of that connection says nothing",
      "of which 64 may be such as end"
    ],
    ["Facts", "110 at once on one store"]
  ],
  ["Leaving a read leaves its call open", ["Connections", "are not used up by reads that are left early"]],
  [
    "The client ignores the filter of readAll",
    ["Subscriptions", "the log leaves out what is not ours", "the log is of the given categories only"]
  ],
  [
    "Subscriptions to the log filter, and tell by checkpoints how far they looked",
    ["Subscriptions", "resumes from the last checkpoint"],
    ["Protocol", "tells by checkpoints how far it looked"]
  ],
  [
    "A subscription begins after its position, a forward read at it, a backward one before it",
    ["Protocol", "inclusive forwards, exclusive backwards"],
    [SUITE, "starts after any position", "reads the log in order after any position"]
  ],
  ["A subscription to a stream that is not there never says that it caught up", [SUITE, "is live at once at the end of the log"]],
  ["What was appended is in the next read", ["Facts", "what was appended is in the next read of another connection"]],
  ["Who follows slowly gets everything", ["Facts", "slower than others write, more than is kept in memory"]],
  [
    "Subscriptions do not come back by themselves",
    [
      "Subscriptions",
      "a subscription resumes",
      "when nobody confirms it",
      "a subscription that stands still while the log goes on is found out"
    ]
  ],
  ["The revision of a stream's settings that the client tells is none", ["Appends", "nobody asks where the settings end"]],

  // What the server offers
  ["$correlationId and $causationId are found by these names", ["Facts", "with the ids of what caused them where it looks for them"]],
  [
    "$maxCount 1 keeps the newest snapshot",
    ["Subscriptions", "the log leaves out what is not ours: the server's events, snapshots"],
    ["Appends", "a snapshot whose settings were written"]
  ],
  ["A category ends at the first hyphen", ["Subscriptions", "A category ends at the first hyphen"]],
  [
    "Streams of projections are there only where projections run",
    ["Subscriptions", "what the server's projections would write is left out"]
  ],
  [
    "No append goes to two streams: a hold comes first, then its job",
    ["../../core/test/jobs/Windows", "A process may stop between any two appends"]
  ],
  ["The two client libraries cannot be in one process", ["FactTable", "one folder knows the client library, and nothing its successor"]]
]

const sourceOf = (file: string): string => {
  if (file !== SUITE) return readFileSync(new URL(`${file}.test.ts`, import.meta.url), "utf8")
  const suites = new URL(SUITE, import.meta.url)
  return readdirSync(suites)
    .map((name) => readFileSync(new URL(name, suites), "utf8"))
    .join("")
}

it.each(facts)("%s", (_, ...shown) => {
  for (const [file = "", ...words] of shown) {
    const source = sourceOf(file)
    for (const title of words) expect(source).toContain(title)
  }
})

it("one folder knows the client library, and nothing its successor", () => {
  const root = new URL("../", import.meta.url)
  const sources = readdirSync(new URL("src", root), { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".ts"))
  const importing = (name: string) =>
    sources.filter((source) => readFileSync(new URL(`src/${source}`, root), "utf8").includes(`from "${name}`)).toSorted()
  for (const name of ["@eventstore/db-client", "@grpc/"])
    expect(importing(name).every((source) => source.startsWith("eventstoredb/"))).toBe(true)
  expect(importing("@eventstore/db-client")).not.toEqual([])
  expect(readFileSync(new URL("package.json", root), "utf8")).not.toContain("@kurrent/")
})
