/**
 * Facts about a node (23.10.6) and its client library that the store has to survive, and the tests that show that it does. A test is
 * named by its file and by words of its title. Measured speeds are not listed, because no test can pin them.
 */
import { readdirSync, readFileSync } from "node:fs"
import { expect, it } from "vitest"

type Shown = readonly [file: string, ...words: ReadonlyArray<string>]

/** The contract that every event store passes: several files. */
const SUITE = "../../testing/src/suites/"

const facts: ReadonlyArray<readonly [fact: string, ...shown: ReadonlyArray<Shown>]> = [
  // Two ways to append
  [
    "The batch call has no deadline, so a lost append hangs for ever",
    ["Appends", "whose request was lost", "for lack of an answer fails at its deadline"],
    ["Connections", "a call that never ends fails at the store's deadline"]
  ],
  [
    "The client notices a frozen host or a silent connection only after 11 to 20 s",
    ["Sockets", "an established connection that falls silent", "a node that accepts connections and never answers", "closing ends soon"]
  ],
  [
    "Concurrent unary appends with consecutive revisions may arrive out of order",
    ["Facts", "keeps its order among a hundred concurrent appends"],
    ["Appends", "to one stream are sent one after another"]
  ],
  [
    "Disposing a client rejects the calls of other clients in the process, throws unhandled errors, and makes later appends hang",
    ["Connections", "a client of the host that is disposed under load", "but no append, read or follower of the store"]
  ],
  ["Killing a node under load causes unhandled rejections in the client", ["Kill", "kill -9 under load"]],
  [
    "Disposing a client ends its calls under way",
    ["Appends", "does not end the calls of the old client"],
    ["Connections", "waits until the appends under way are answered"]
  ],
  [
    "After a call without an answer, only a fresh client is certain to work",
    ["Appends", "makes a fresh client take over"],
    ["Sockets", "is replaced by a fresh one"]
  ],

  // Appends
  [
    "An append without an expected revision is deduplicated only by ids in the node's memory",
    ["Appends", "always expect an exact revision"]
  ],
  [
    "An append repeated at an exact revision returns its first result, even after a crash or later events",
    ["Facts", "sent again after 4,000 later events returns its first result"],
    ["Appends", "sending the identical batch again settles it", "and arrives after it was sent again is written once"],
    ["Kill", "appends in doubt are settled"],
    ["Aggregate", "writes each payment exactly once"]
  ],
  [
    "A repeated append is compared by ids only; the same id at a new revision is stored twice",
    ["Facts", "with the same ids and other data leaves the first data in place", "at a new revision it is written again"]
  ],
  ["Repeating part of a batch succeeds; more events or another order do not", ["Facts", "of part of a batch at its own revision succeeds"]],
  [
    "The answer to a repeated append has no position if its events were truncated or deleted",
    ["Appends", "has a position when it was sent again after its events were"]
  ],
  ["An append without events checks the revision", ["Protocol", "an append without events checks the revision"]],
  [
    "throwOnAppendFailure: false hides the actual revision",
    ["ConnectionString", "throwOnAppendFailure=false"],
    ["Facts", `_tag: "WrongRevision", actual: 1`]
  ],
  [
    "An append holds at most 1 MiB; a message of 17 MB ends the connection with all its calls",
    ["Facts", "over the size limit is AppendTooLarge", "of more than a megabyte is refused by the node if it is sent"],
    ["Fault", "an append that is too large", "a message that is too large for the connection"],
    [SUITE, "accepts an append of the largest size, and writes nothing of a larger one"]
  ],
  [
    "The library's append never settles if JSON.stringify meets a bigint; data that is not JSON is read back as text",
    ["Facts", "are read back unchanged"],
    [SUITE, "keeps any JSON byte for byte"]
  ],
  ["An empty stream name or event type is answered with an unknown error", ["Appends", "an invalid id, stream name, type or text"]],

  // Errors
  [
    "Some errors have a type without a code, others a code without a type",
    ["Fault", "a code without a type, during a reconnect", "an unknown error of the batch call: only a message"]
  ],
  [
    "A node that shuts down ends subscriptions with code 13, and accepts appends for a while longer",
    ["Subscriptions", "the node shuts down"]
  ],
  [
    "After kill -9, calls fail with code 14, and a subscription reports an error but no end",
    ["Subscriptions", "when the connection breaks"],
    ["Kill", "the follower at each of two hosts"]
  ],
  [
    "A node that is not ready answers an append with only a message, and a read with code 14",
    ["Appends", "because the node is not ready"],
    ["Subscriptions", `"silent", "drop", "notReady"`],
    ["Fault", "an append at a node that is not ready: a type without a code"]
  ],
  [
    "A batch append from a client whose clock is behind is refused as past its deadline",
    ["Appends", "may come from a client whose clock is"]
  ],
  [
    "The client asks for the server's features once, and keeps a failed answer for ever",
    ["Connections", "still gets appends, because the store does not ask for the list"]
  ],

  // Reading and following
  [
    "A connection takes 100 open calls; the next one hangs without an error",
    [
      "Connections",
      "is never reached by 500 concurrent appends and reads",
      "is not reached by 110 followers",
      "The 101st call on that connection hangs",
      "leaves room for the subscription while 64 appends are unanswered"
    ],
    ["Facts", "110 followers of one store"]
  ],
  ["A read that is left early keeps its call open", ["Connections", "is not reached by 120 reads that are left early"]],
  [
    "The client ignores the filter of readAll",
    ["Subscriptions", "and events of other programs", "the log contains only the given categories"]
  ],
  [
    "Subscriptions to the log filter events, and their checkpoints show how far the node has read",
    ["Subscriptions", "resumes from the last checkpoint"],
    ["Protocol", "its checkpoints show how far the node has read"]
  ],
  [
    "A subscription begins after its position, a forward read at it, and a backward read before it",
    ["Protocol", "inclusive forwards, exclusive backwards"],
    [SUITE, "starts after any position", "reads the log in order after any position"]
  ],
  ["A subscription to a stream that does not exist never reports that it caught up", [SUITE, "is live at once at the end of the log"]],
  ["An append is visible to the next read", ["Facts", "an append is visible to the next read on another connection"]],
  ["A slow subscriber gets every event", ["Facts", "a follower that is slower than the writers gets every event"]],
  [
    "Subscriptions do not resume by themselves",
    [
      "Subscriptions",
      "a subscription resumes",
      "when the node does not confirm it",
      "a subscription that delivers nothing while the log grows is detected"
    ]
  ],
  ["The client reports a commit position as the revision of a stream's metadata", ["Appends", "which reads no metadata"]],

  // What the server offers
  ["Other clients find $correlationId and $causationId in the metadata by these names", ["Facts", "with $correlationId and $causationId"]],
  [
    "$maxCount 1 keeps the newest snapshot",
    ["Subscriptions", "the log excludes the server's own events, snapshots"],
    ["Appends", "a snapshot that failed after its stream's metadata was written"]
  ],
  ["A category ends at the first hyphen", ["Subscriptions", "A category ends at the first hyphen"]],
  ["Streams of projections exist only where projections run", ["Subscriptions", "the log excludes the events of the server's projections"]],
  [
    "An append goes to one stream only, so a hold is appended first and its job second",
    ["../../core/test/jobs/Windows", "A process may stop between any two appends"]
  ],
  [
    "The two client libraries cannot run in one process",
    ["FactTable", "only one folder imports the client library, and none its successor"]
  ]
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

it("only one folder imports the client library, and none its successor", () => {
  const root = new URL("../", import.meta.url)
  const sources = readdirSync(new URL("src", root), { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".ts"))
  const importing = (name: string) =>
    sources.filter((source) => readFileSync(new URL(`src/${source}`, root), "utf8").includes(`from "${name}`)).toSorted()
  for (const name of ["@eventstore/db-client", "@grpc/"])
    expect(importing(name).every((source) => source.startsWith("eventstoredb/"))).toBe(true)
  expect(importing("@eventstore/db-client")).not.toEqual([])
  expect(readFileSync(new URL("package.json", root), "utf8")).not.toContain("@kurrent/")
})
