/** Errors of the library, classified by type, code or message. Unless an error proves that nothing was written, the call is in doubt. */
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

/** As the batch call reports them: with a type and without a code. */
const codeless = (error: Error) => Object.assign(error, { code: undefined })

const cases: ReadonlyArray<readonly [string, unknown, Kind]> = [
  ["a code without a type, during a reconnect", raw(14, "UNAVAILABLE: Connection dropped"), "noAnswer"],
  ["a refused connection", served(14, "No connection established. Last error: connect ECONNREFUSED"), "unreachable"],
  ["a node that shuts down", served(13, "INTERNAL: Received RST_STREAM with code 2"), "noAnswer"],
  ["a read at a node that is not ready", served(14, "Server Is Not Ready"), "unreachable"],
  [
    "an append at a node that is not ready: a type without a code",
    codeless(new UnknownError(served(2, "Could not recognize Server Is Not Ready"))),
    "unreachable"
  ],
  ["a passed deadline: a type without a code", codeless(new DeadlineExceededError(served(4, "Timeout"))), "noAnswer"],
  [
    "an unknown error of the batch call: only a message",
    codeless(new UnknownError(served(2, "Could not recognize Something Else"))),
    "noAnswer"
  ],
  ["a message that is too large for the connection", served(8, "Received message larger than max (17000000 vs. 1048576)"), "noAnswer"],
  [
    "an append that is too large",
    served(3, "Too large", { exception: "maximum-append-size-exceeded", "maximum-append-size": "1048576" }),
    "tooLarge"
  ],
  ["a deleted stream", served(9, "Deleted", { exception: "stream-deleted", "stream-name": "facts-1" }), "refused"],
  ["a missing permission", served(7, "Access Denied", { exception: "access-denied" }), "refused"],
  ["wrong credentials", served(16, "Access Denied"), "refused"],
  [
    "a node that is not the leader",
    served(5, "Leader info available", { exception: "not-leader", "leader-endpoint-host": "h", "leader-endpoint-port": "1" }),
    "notLeader"
  ],
  ["an error with only a message", new Error("boom"), "noAnswer"],
  ["no error", undefined, "noAnswer"],
  ["a string", "14 UNAVAILABLE", "noAnswer"]
]

for (const [what, error, kind] of cases) it(`${what}: ${kind}`, () => expect(faultOf(error).kind).toBe(kind))

it("exactly the gRPC codes that leave the outcome open are in doubt", () => {
  const codes = Array.from({ length: 17 }, (_, code) => code).filter((code) => code > 0)
  const inDoubt = codes.filter((code) => faultOf(served(code, "told")).kind === "noAnswer")
  // Cancelled, unknown, deadline exceeded, resource exhausted, aborted, internal, unavailable, data loss
  expect(inDoubt).toEqual([1, 2, 4, 8, 10, 13, 14, 15])
})
