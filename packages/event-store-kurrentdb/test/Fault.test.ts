/** Errors as they arrive: by type, by code, by words or by nothing. What is not certainly undone is in doubt. */
import { DeadlineExceededError, UnknownError } from "@eventstore/db-client"
import { Metadata, type ServiceError } from "@grpc/grpc-js"
import { expect, it } from "vitest"
import type { Kind } from "../src/Driver.ts"
import { faultOf } from "../src/eventstoredb/Fault.ts"

const raw = (code: number, details: string) => Object.assign(new Error(`${code} ${details}`), { code })

const served = (code: number, details: string, named: Readonly<Record<string, string>> = {}): ServiceError => {
  const metadata = new Metadata()
  for (const [name, value] of Object.entries(named)) metadata.set(name, value)
  return Object.assign(raw(code, details), { details, metadata })
}

/** As the batch call has them: a type, and no code. */
const codeless = (error: Error) => Object.assign(error, { code: undefined })

const cases: ReadonlyArray<readonly [string, unknown, Kind]> = [
  ["a code and no type, while it connects again", raw(14, "UNAVAILABLE: Connection dropped"), "noAnswer"],
  ["a connection that was refused", served(14, "No connection established. Last error: connect ECONNREFUSED"), "unreachable"],
  ["a node that stops in good order", served(13, "INTERNAL: Received RST_STREAM with code 2"), "noAnswer"],
  ["a node that is not ready, for a read", served(14, "Server Is Not Ready"), "unreachable"],
  [
    "a node that is not ready, for an append: a type and no code",
    codeless(new UnknownError(served(2, "Could not recognize Server Is Not Ready"))),
    "unreachable"
  ],
  ["a deadline that passed: a type and no code", codeless(new DeadlineExceededError(served(4, "Timeout"))), "noAnswer"],
  ["an error of the batch call: words alone", codeless(new UnknownError(served(2, "Could not recognize Something Else"))), "noAnswer"],
  ["a message that was too much for the connection", served(8, "Received message larger than max (17000000 vs. 1048576)"), "noAnswer"],
  [
    "an append that is too large",
    served(3, "Too large", { exception: "maximum-append-size-exceeded", "maximum-append-size": "1048576" }),
    "tooLarge"
  ],
  ["a stream that was deleted", served(9, "Deleted", { exception: "stream-deleted", "stream-name": "facts-1" }), "refused"],
  ["a permission that is missing", served(7, "Access Denied", { exception: "access-denied" }), "refused"],
  ["a stranger", served(16, "Access Denied"), "refused"],
  [
    "a node that does not lead",
    served(5, "Leader info available", { exception: "not-leader", "leader-endpoint-host": "h", "leader-endpoint-port": "1" }),
    "notLeader"
  ],
  ["words alone", new Error("boom"), "noAnswer"],
  ["no error", undefined, "noAnswer"],
  ["a text", "14 UNAVAILABLE", "noAnswer"]
]

for (const [what, error, kind] of cases) it(`${what}: ${kind}`, () => expect(faultOf(error).kind).toBe(kind))

it("each code of gRPC that leaves open what was done is in doubt, and no other", () => {
  const codes = Array.from({ length: 17 }, (_, code) => code).filter((code) => code > 0)
  const inDoubt = codes.filter((code) => faultOf(served(code, "told")).kind === "noAnswer")
  // Cancelled, unknown, deadline exceeded, resource exhausted, aborted, internal, unavailable, data loss
  expect(inDoubt).toEqual([1, 2, 4, 8, 10, 13, 14, 15])
})
