import { MasterKey, Vault } from "@millrace/core"
import { MemoryStateStore } from "@millrace/event-sourcing"
import { Effect, Layer, Logger, Redacted, type Scope } from "effect"
import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { digestOf, hasMessageId, layerKeyed, QueueIds } from "../../src/mail/QueueIds.ts"
import * as Client from "./Client.ts"
import { ANNA, BERT, serve } from "./Host.ts"
import * as Mailboxes from "./Mailboxes.ts"

const run = <A, E>(effect: Effect.Effect<A, E, Scope.Scope>): Promise<A> =>
  Effect.runPromise(Effect.scoped(effect).pipe(Effect.provide(Logger.layer([]))))

interface Sent {
  readonly sender: string
  readonly message: string
  readonly to?: string
}

/** Sends each message over one connection, to a server of its own, which ends then. Gives the answers. */
const life = (mailboxes: Mailboxes.Mailboxes, sent: ReadonlyArray<Sent>) =>
  Effect.scoped(
    Effect.gen(function* () {
      const client = yield* Client.greeted((yield* serve(mailboxes)).port)
      return yield* Effect.forEach(sent, ({ message, sender, to = ANNA }) =>
        Effect.gen(function* () {
          yield* Client.codes(client, [`MAIL FROM:<${sender}>`, `RCPT TO:<${to}>`, "DATA"])
          yield* client.write(Buffer.from(`${message}\r\n.\r\n`, "latin1"))
          return yield* client.answer
        })
      )
    })
  )

const name = fc.stringMatching(/^[a-z]{1,8}$/u)
const sent = fc.record({
  sender: name.map((local) => `${local}@example.test`),
  message: fc
    .tuple(fc.constantFrom("Message-ID: <", "message-id:<", "MESSAGE-ID :\t<", "Message-Id:\r\n <"), name, fc.boolean(), name)
    .map(([header, id, isFirst, body]) => {
      const lines = [`${header}${id}@example.test>`, "Subject: Hello"]
      return `${(isFirst ? lines : lines.toReversed()).join("\r\n")}\r\n\r\n${body}`
    })
})

describe("a message with a Message-ID", () => {
  test("is taken once, however often it is brought, also after a restart; another sender, another byte and another inbox make another", () =>
    fc.assert(
      fc.asyncProperty(fc.array(fc.array(sent, { maxLength: 4 }), { maxLength: 3 }), (lives) =>
        run(
          Effect.gen(function* () {
            const mailboxes = Mailboxes.make([ANNA, BERT])
            const all = lives.flat()
            const answers = (yield* Effect.forEach([...lives, all], (one) => life(mailboxes, one))).flat()
            expect(answers.filter((answer) => !answer.startsWith("250 "))).toEqual([])
            const taken = mailboxes.taken.get(ANNA) ?? []
            const different = new Set(all.map(({ message, sender }) => `${sender} ${message}\r\n`))
            expect(taken.map(({ raw, sender }) => `${sender} ${Buffer.from(raw).toString("latin1")}`)).toEqual([...different])
            expect(new Set(taken.map(({ queueId }) => queueId)).size).toBe(different.size)
            yield* life(
              mailboxes,
              all.map((one) => ({ ...one, to: BERT }))
            )
            expect(mailboxes.taken.get(BERT)?.map(({ queueId }) => queueId)).toEqual(taken.map(({ queueId }) => queueId))
          })
        )
      ),
      { numRuns: 10, seed: 5 }
    ))

  test.each([
    ["none", "Subject: Hello\r\n\r\nBody"],
    ["one without a value", "Message-ID:\r\nSubject: Hello\r\n\r\nBody"],
    ["one in the body", "Subject: Hello\r\n\r\nMessage-ID: <a@example.test>"],
    ["one within another header", "Subject: Hello\r\n Message-ID: <a@example.test>\r\nX-Message-ID: <a@example.test>\r\n\r\nBody"]
  ])("a message with %s is another each time", (_, message) =>
    run(
      Effect.gen(function* () {
        const mailboxes = Mailboxes.make([ANNA])
        const one = { sender: "shop@example.test", message }
        yield* life(mailboxes, [one, one])
        yield* life(mailboxes, [one])
        expect(new Set(mailboxes.taken.get(ANNA)?.map(({ queueId }) => queueId)).size).toBe(3)
      })
    )
  )

  test("is not there if its value is a million folded lines of nothing", () => {
    const folds = Buffer.from(`Message-ID:${"\r\n ".repeat(1_000_000)}\r\n\r\n<a@example.test>`)
    expect(hasMessageId(folds)).toBe(false)
  })
})

describe("queue ids under the master key", () => {
  const idsUnder = (key: string) =>
    Effect.gen(function* () {
      return yield* QueueIds
    }).pipe(
      Effect.provide(
        layerKeyed.pipe(
          Layer.provide(Vault.Vault.layer),
          Layer.provide([MemoryStateStore.layer, MasterKey.layer(Redacted.make(key.repeat(32)))])
        )
      )
    )

  test("are the same wherever the key is, and say nothing without it", () =>
    run(
      Effect.gen(function* () {
        const digest = digestOf("shop@example.test", Buffer.from("Message-ID: <a@example.test>\r\n\r\n"))
        const ids = yield* Effect.forEach(["ab", "ab", "cd"], idsUnder)
        const [one, same, other] = ids.map((ids) => ids.of(digest))
        expect(one).toMatch(/^[0-9a-f]{32}$/u)
        expect(same).toBe(one)
        expect(new Set([one, other, digest.slice(0, 32), ids[0]?.next(), ids[0]?.next()]).size).toBe(5)
      })
    ))
})
