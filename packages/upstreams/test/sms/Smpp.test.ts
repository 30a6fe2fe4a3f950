/** Messages from a real SMSC: the server side of the same package, on a real socket. */
/// <reference path="../../src/sms/smpp.d.ts" />
import { once } from "node:events"
import { type AddressInfo, createServer, type Socket } from "node:net"
import { type IncomingSms, NotAPublicNumber, SmsReceiver } from "@millrace/core"
import { Deferred, Effect, Layer, Logger, Metric, type Scope } from "effect"
import smpp, { type Pdu, type Session } from "smpp"
import { describe, expect, test } from "vitest"
import { type Part, Parts, partOf } from "../../src/sms/SmppMessage.ts"
import * as SmppSource from "../../src/sms/SmppSource.ts"

const NUMBER = "15005550006"

interface Smsc {
  readonly url: URL
  /** The next session that binds. */
  readonly bound: Effect.Effect<Session>
  readonly binds: Array<Pick<Pdu, "system_id" | "password">>
  /** Refuses new connections, and ends those that there are. */
  readonly vanish: Effect.Effect<void>
}

/** An SMSC for as long as the scope is open. `refuse`: binds that it refuses first. */
const smsc = (refuse = 0): Effect.Effect<Smsc, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const binds: Smsc["binds"] = []
      const sessions: Array<Session> = []
      const waiting: Array<(session: Session) => void> = []
      const all = new Set<Session>()
      const server = smpp.createServer((session) => {
        all.add(session)
        session.on("error", () => session.destroy())
        session.on("enquire_link", (pdu: Pdu) => session.send(pdu.response()))
        session.on("bind_transceiver", (pdu: Pdu) => {
          binds.push({ system_id: pdu.system_id ?? "", password: pdu.password ?? "" })
          session.send(pdu.response({ command_status: binds.length <= refuse ? smpp.ESME_RBINDFAIL : 0 }))
          if (binds.length <= refuse) return
          const next = waiting.shift()
          if (next === undefined) sessions.push(session)
          else next(session)
        })
      })
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
      const bound = Effect.promise(
        () =>
          new Promise<Session>((resolve) => {
            const session = sessions.shift()
            if (session === undefined) waiting.push(resolve)
            else resolve(session)
          })
      )
      const vanish = Effect.sync(() => {
        server.close()
        for (const session of all) session.destroy()
      })
      const { port } = server.address() as AddressInfo
      return { url: new URL(`smpp://ada:se%40cret@127.0.0.1:${port}`), bound, binds, server, all, vanish }
    }),
    ({ all, server }) =>
      Effect.promise(() => {
        for (const session of all) session.destroy()
        return new Promise((resolve) => server.close(resolve))
      })
  )

/** The status of the answer to a message. */
const deliver = (session: Session, fields: object): Promise<number> =>
  new Promise((resolve) => {
    const addresses = { source_addr: "Example", source_addr_ton: 5, destination_addr: NUMBER, destination_addr_ton: 1 }
    session.deliver_sm({ ...addresses, ...fields }, ({ command_status }) => resolve(command_status))
  })

const testing = (
  name: string,
  body: (host: {
    readonly smsc: Smsc
    readonly received: Array<IncomingSms>
    readonly isBound: Effect.Effect<boolean>
  }) => Effect.Effect<void, unknown, Scope.Scope>,
  { receive, refuse = 0 }: { readonly receive?: SmsReceiver["Service"]["receive"]; readonly refuse?: number } = {}
): void =>
  test(name, () =>
    Effect.gen(function* () {
      const server = yield* smsc(refuse)
      const received: Array<IncomingSms> = []
      const keep = (message: IncomingSms) =>
        Effect.sync(() => {
          received.push(message)
          return "received" as const
        })
      const receiver = Layer.effect(
        SmsReceiver,
        Effect.map(SmsReceiver, (service) => ({ ...service, receive: receive ?? keep }))
      ).pipe(Layer.provide(SmsReceiver.unconfigured))
      const context = yield* Layer.build(receiver)
      const source = SmppSource.connect({ url: server.url, enquireEvery: 20, retryAfter: 10 })
      const { bound } = yield* Effect.provideContext(source, context)
      yield* body({ smsc: server, received, isBound: bound })
    }).pipe(Effect.scoped, Effect.provide(Logger.layer([])), Effect.runPromise)
  )

describe("an SMSC", () => {
  testing("is bound to with the name and password of the address, and brings texts of each coding", ({ received, smsc }) =>
    Effect.gen(function* () {
      const session = yield* smsc.bound
      expect(smsc.binds).toEqual([{ system_id: "ada", password: "se@cret" }])
      const texts = ["Your code is 482913 @£{€}", "Ihr Code lautet 482913: Größe ÿ", "您的验证码是482913 😀"]
      for (const [i, data_coding] of [0, 3, 8].entries())
        expect(yield* Effect.promise(() => deliver(session, { data_coding, short_message: texts[i] }))).toBe(0)
      expect(received.map(({ text }) => text)).toEqual(texts)
      expect(received[0]).toMatchObject({ source: "smpp", from: "Example", to: NUMBER })
      const long = "Your code is 482913. ".repeat(20)
      expect(yield* Effect.promise(() => deliver(session, { short_message: "", message_payload: long }))).toBe(0)
      expect(received.at(-1)?.text).toBe(long)
    })
  )

  testing(
    "is bound once it has accepted the connection, and no more once that has ended, as the metric says",
    ({ isBound, smsc }) =>
      Effect.gen(function* () {
        const shown = Effect.map(Metric.snapshot, (metrics) =>
          metrics.filter(({ id }) => id === "millrace.sms.smsc.connected").map(({ state }) => state)
        )
        const become = (bound: boolean) => Effect.promise(() => expect.poll(() => Effect.runSync(isBound), { timeout: 10_000 }).toBe(bound))
        expect(yield* isBound).toBe(false)
        expect(yield* shown).toEqual([{ value: 0 }])
        yield* smsc.bound
        yield* become(true)
        expect(yield* shown).toEqual([{ value: 1 }])
        expect(smsc.binds).toHaveLength(2)
        yield* smsc.vanish
        yield* become(false)
        expect(yield* shown).toEqual([{ value: 0 }])
      }),
    { refuse: 1 }
  )

  testing("brings long messages in parts, in any order, by header or by parameters", ({ received, smsc }) =>
    Effect.gen(function* () {
      const session = yield* smsc.bound
      const udh = (...bytes: ReadonlyArray<number>) => Buffer.from(bytes)
      const messages = [
        [
          { short_message: { udh: udh(5, 0, 3, 7, 2, 2), message: "two" }, esm_class: 0x40 },
          { short_message: { udh: udh(5, 0, 3, 7, 2, 1), message: "one " }, esm_class: 0x40 }
        ],
        [
          { short_message: { udh: udh(6, 8, 4, 1, 7, 2, 1), message: "eins " }, esm_class: 0x40 },
          { short_message: { udh: udh(6, 8, 4, 1, 7, 2, 2), message: "zwei" }, esm_class: 0x40 }
        ],
        [
          { short_message: "un ", sar_msg_ref_num: 9, sar_total_segments: 2, sar_segment_seqnum: 1 },
          { short_message: "deux", sar_msg_ref_num: 9, sar_total_segments: 2, sar_segment_seqnum: 2 }
        ]
      ]
      const statuses = yield* Effect.promise(() => Promise.all(messages.flat().map((fields) => deliver(session, fields))))
      expect(statuses).toEqual([0, 0, 0, 0, 0, 0])
      expect(received.map(({ text }) => text)).toEqual(["one two", "eins zwei", "un deux"])
    })
  )

  const kept = Deferred.makeUnsafe<"received">()
  testing(
    "is answered when the message is durable, and not before",
    ({ smsc }) =>
      Effect.gen(function* () {
        const session = yield* smsc.bound
        let status: number | undefined
        const answered = deliver(session, { short_message: "482913" }).then((answer) => {
          status = answer
        })
        // Another exchange on the same connection takes longer than an answer would have
        yield* Effect.promise(() => new Promise<void>((resolve) => session.enquire_link(() => resolve())))
        expect(status).toBeUndefined()
        yield* Deferred.succeed(kept, "received")
        yield* Effect.promise(() => answered)
        expect(status).toBe(0)
      }),
    { receive: () => Deferred.await(kept) }
  )

  testing(
    "is told of a number that is not the host's, and that receipts were taken",
    ({ smsc }) =>
      Effect.gen(function* () {
        const session = yield* smsc.bound
        expect(yield* Effect.promise(() => deliver(session, { short_message: "482913" }))).toBe(0x0b)
        expect(yield* Effect.promise(() => deliver(session, { short_message: "id:1 stat:DELIVRD", esm_class: 0x04 }))).toBe(0)
      }),
    { receive: () => Effect.fail(new NotAPublicNumber()) }
  )

  testing(
    "is connected to again, after it refused and after the connection broke",
    ({ received, smsc }) =>
      Effect.gen(function* () {
        const first = yield* smsc.bound
        expect(smsc.binds).toHaveLength(3)
        first.destroy()
        const second = yield* smsc.bound
        expect(yield* Effect.promise(() => deliver(second, { short_message: "482913" }))).toBe(0)
        expect(received).toHaveLength(1)
      }),
    { refuse: 2 }
  )
})

describe("an SMSC that takes the connection and says nothing", () => {
  /** It never answers to TLS, so the connection is never open. */
  const silent = Effect.acquireRelease(
    Effect.promise(async () => {
      const clients: Array<Socket> = []
      const server = createServer((client) => void clients.push(client.on("error", () => {})))
      server.listen(0, "127.0.0.1")
      await once(server, "listening")
      return { server, clients, url: new URL(`ssmpp://ada:secret@127.0.0.1:${(server.address() as AddressInfo).port}`) }
    }),
    ({ clients, server }) =>
      Effect.sync(() => {
        for (const client of clients) client.destroy()
        server.close()
      })
  )
  const on = (body: (smsc: Effect.Success<typeof silent>) => Effect.Effect<void, unknown, SmsReceiver | Scope.Scope>) =>
    Effect.flatMap(silent, body).pipe(
      Effect.scoped,
      Effect.provide(Layer.merge(SmsReceiver.unconfigured, Logger.layer([]))),
      Effect.runPromise
    )
  const connections = ({ clients }: Effect.Success<typeof silent>, count: number) =>
    Effect.repeat(Effect.sleep(5), { until: () => clients.length >= count })

  test("is connected to again", () =>
    on((smsc) =>
      Effect.gen(function* () {
        yield* SmppSource.connect({ url: smsc.url, answerWithin: 20, retryAfter: 10 })
        yield* connections(smsc, 3)
      })
    ))

  test("does not hold up a host that stops", () =>
    on((smsc) => Effect.scoped(Effect.andThen(SmppSource.connect({ url: smsc.url }), connections(smsc, 1)))))
})

describe("parts", () => {
  const part = (number: number, total = 2, reference = 1): Part => ({
    from: "a",
    to: "b",
    text: `${number}`,
    of: { reference, total, number }
  })

  test("of a message that stays incomplete are given up, and so are the oldest of too many", () => {
    const parts = new Parts<string>(1_000, 2)
    expect(parts.add(part(1), "x", 0)).toBeUndefined()
    expect(parts.giveUp(999)).toEqual([])
    expect(parts.giveUp(1_000)).toEqual(["x"])
    for (const reference of [1, 2, 3]) parts.add(part(1, 2, reference), `${reference}`, 2_000)
    expect(parts.giveUp(2_000)).toEqual(["1"])
    expect(parts.add(part(2, 2, 3), "y", 2_001)).toEqual({ from: "a", to: "b", text: "12", waiting: ["3", "y"] })
  })

  test("with a place that cannot be are whole messages", () => {
    const pdu = { source_addr: "1415", source_addr_ton: 1, destination_addr: NUMBER, short_message: { message: "x" } }
    const of = (number: number, total: number) =>
      partOf({
        ...pdu,
        command: "deliver_sm",
        command_status: 0,
        sequence_number: 1,
        response: () => expect.fail(),
        sar_msg_ref_num: 1,
        sar_total_segments: total,
        sar_segment_seqnum: number
      })
    expect([of(0, 2)?.of, of(3, 2)?.of, of(1, 1)?.of]).toEqual([undefined, undefined, undefined])
    expect(of(1, 2)).toEqual({ from: "+1415", to: NUMBER, text: "x", of: { reference: 1, total: 2, number: 1 } })
  })
})
