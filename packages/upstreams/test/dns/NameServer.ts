/** A real name server on loopback, UDP and TCP on one port, that answers as a test tells it: by a zone, and in the ways in which servers fail and lie. */
import { createSocket, type Socket as UdpSocket } from "node:dgram"
import { createServer, type Server, type Socket as TcpSocket } from "node:net"
import {
  type Answer,
  AUTHORITATIVE_ANSWER,
  type DecodedPacket,
  decode,
  encode,
  type OptAnswer,
  type Packet,
  type RecordType,
  type SoaAnswer,
  TRUNCATED_RESPONSE
} from "dns-packet"
import { Effect, Queue } from "effect"

export interface Query {
  readonly transport: "udp" | "tcp"
  /** In lower case. */
  readonly name: string
  readonly type: RecordType
  readonly packet: DecodedPacket
  readonly bytes: Buffer
  /** Where it came from. */
  readonly port: number
}

export interface Message {
  readonly bytes: Buffer
  /** How it is sent: from the address that was asked unless told; from another port (UDP); as its first half, before hanging up (TCP). */
  readonly by?: "stranger" | "halves"
}

/** What goes back for a query: nothing, or some messages, one after the other. */
export type Reply = (query: Query) => ReadonlyArray<Message>

type Nameless<A> = A extends Answer ? Omit<A, "name"> : never
/** A record of the name it is listed under. */
export type ZoneRecord = Nameless<Exclude<Answer, OptAnswer>>

export const a = (ip: string, ttl = 300): ZoneRecord => ({ type: "A", ttl, data: ip })
export const aaaa = (ip: string, ttl = 300): ZoneRecord => ({ type: "AAAA", ttl, data: ip })
export const mx = (exchange: string, preference = 10, ttl = 300): ZoneRecord => ({ type: "MX", ttl, data: { exchange, preference } })
export const ns = (host: string, ttl = 300): ZoneRecord => ({ type: "NS", ttl, data: host })
export const cname = (host: string, ttl = 300): ZoneRecord => ({ type: "CNAME", ttl, data: host })
/** One record; several strings are its parts. */
export const txt = (parts: string | ReadonlyArray<string | Buffer>, ttl = 300): ZoneRecord => ({
  type: "TXT",
  ttl,
  data: typeof parts === "string" ? parts : [...parts]
})
export const soa = (minimum = 60, ttl = 300): ZoneRecord => ({
  type: "SOA",
  ttl,
  data: { mname: "ns.example.test", rname: "host\\.master.example.test", serial: 7, refresh: 3600, retry: 600, expire: 86_400, minimum }
})

const rcodes = { NOERROR: 0, FORMERR: 1, SERVFAIL: 2, NXDOMAIN: 3, NOTIMP: 4, REFUSED: 5 }

const message = (query: Query, { flags = 0, ...packet }: Packet): Message => ({
  bytes: encode({
    type: "response",
    id: query.packet.id ?? 0,
    flags: AUTHORITATIVE_ANSWER | flags,
    questions: query.packet.questions ?? [],
    ...packet
  })
})

/** Bytes that the client takes in one datagram: 512, or what it says by EDNS (RFC 6891). */
const room = ({ packet, transport }: Query): number => {
  const opt = packet.additionals?.find(({ type }) => type === "OPT")
  return transport === "tcp" ? 65_535 : opt?.type === "OPT" ? Math.max(512, opt.udpPayloadSize) : 512
}

/** A whole message over TCP, and over UDP where it fits; else the bit that says to ask over TCP. */
const packet =
  (packet: Packet): Reply =>
  (query) => {
    const whole = message(query, packet)
    return [whole.bytes.length <= room(query) ? whole : message(query, { flags: TRUNCATED_RESPONSE })]
  }

export const answer = (...answers: ReadonlyArray<Answer>): Reply => packet({ answers: [...answers] })
export const refusal = (rcode: keyof typeof rcodes): Reply => packet({ flags: rcodes[rcode] })
export const servfail = refusal("SERVFAIL")
export const refused = refusal("REFUSED")

/** For how long the absence of something may be kept is said by its zone's SOA record (RFC 2308). */
export interface Absence {
  readonly minimum: number
  readonly ttl?: number
}
const proof = ({ minimum, ttl = 300 }: Absence): SoaAnswer => ({
  type: "SOA",
  name: "test",
  ttl,
  data: { mname: "ns.test", rname: "hostmaster.test", minimum }
})
const absent =
  (flags: number) =>
  (absence?: Absence): Reply =>
    packet({ flags, authorities: absence === undefined ? [] : [proof(absence)] })
export const nxdomain = absent(rcodes.NXDOMAIN)
export const nodata = absent(rcodes.NOERROR)

/** Names other servers, as one does that does not resolve. */
export const referral: Reply = packet({ authorities: [{ type: "NS", name: "test", ttl: 300, data: "ns.test" }] })

/** An alias of a name that has nothing of the type, by the word of the zone `test`. */
export const aliasOfNothing = (name: string, target: string): Reply =>
  packet({ answers: [{ type: "CNAME", name, ttl: 300, data: target }], authorities: [proof({ minimum: 60 })] })

/** The first record alone of what a script would reply with: each link of a chain is to be asked for. */
export const linkByLink =
  (script: (query: Query) => Reply): ((query: Query) => Reply) =>
  (query) =>
  (asked) =>
    script(query)(asked).map(({ bytes }) => message(asked, { answers: (decode(bytes).answers ?? []).slice(0, 1) }))

export const silence: Reply = () => []
export const garbage =
  (bytes: Uint8Array): Reply =>
  () => [{ bytes: Buffer.from(bytes) }]
/** The query itself comes back. */
export const echo: Reply = ({ bytes }) => [{ bytes }]

/** Truncated over UDP; as told over TCP. */
export const truncated =
  (reply: Reply): Reply =>
  (query) =>
    query.transport === "tcp" ? reply(query) : [message(query, { flags: TRUNCATED_RESPONSE })]

/** One after the other, a query each; the last for all that follow. */
export const inTurn = (...replies: ReadonlyArray<Reply>): Reply => {
  let turn = 0
  return (query) => replies[Math.min(turn++, replies.length - 1)]?.(query) ?? []
}

/** The messages of each, in order: a lie before the truth, say. */
export const both =
  (...replies: ReadonlyArray<Reply>): Reply =>
  (query) =>
    replies.flatMap((reply) => reply(query))

/** A reply as if something else had been asked. */
const insteadOf =
  (change: (query: Query) => Packet) =>
  (reply: Reply): Reply =>
  (query) =>
    reply({ ...query, packet: { ...query.packet, ...change(query) } })

export const wrongId = insteadOf(({ packet }) => ({ id: ((packet.id ?? 0) + 1) % 65_536 }))
export const wrongName = insteadOf(({ packet }) => ({
  questions: (packet.questions ?? []).map((question) => ({ ...question, name: `x${question.name.slice(1)}` }))
}))
export const wrongType = insteadOf(({ packet }) => ({
  questions: (packet.questions ?? []).map((question) => ({ ...question, type: question.type === "SRV" ? "PTR" : "SRV" }))
}))
export const wrongClass = insteadOf(({ packet }) => ({
  questions: (packet.questions ?? []).map((question) => ({ ...question, class: "CH" }))
}))
export const noQuestion = insteadOf(() => ({ questions: [] }))
export const shouted = insteadOf(({ packet }) => ({
  questions: (packet.questions ?? []).map((question) => ({ ...question, name: question.name.toUpperCase() }))
}))

const sent =
  (by: NonNullable<Message["by"]>) =>
  (reply: Reply): Reply =>
  (query) =>
    reply(query).map(({ bytes }) => ({ bytes, by }))
/** Comes from another port; over UDP. */
export const byStranger = sent("stranger")
/** The first half of it, and then the connection's end; over TCP. */
export const cutShort = sent("halves")

/**
 * Answers by name, in lower case: with the records of the type asked for, or with a CNAME record and what it leads to, as far as the
 * zone knows. A name of the zone may have a reply instead, and whatever has no name here does not exist.
 */
export const zone =
  (names: Readonly<Record<string, ReadonlyArray<ZoneRecord> | Reply>>, absence?: Absence) =>
  (query: Query): Reply => {
    const answers: Array<Answer> = []
    let name = query.name
    for (let links = 0; links < 20; links++) {
      const known = names[name]
      if (typeof known === "function") return answers.length === 0 ? known : answer(...answers)
      if (known === undefined) return answers.length === 0 ? nxdomain(absence) : answer(...answers)
      const alias = query.type === "CNAME" ? undefined : known.find(({ type }) => type === "CNAME")
      const found = alias === undefined ? known.filter(({ type }) => type === query.type) : [alias]
      answers.push(...found.map((record) => ({ ...record, name })))
      if (alias?.type !== "CNAME") break
      name = alias.data.toLowerCase()
    }
    return answers.length === 0 ? nodata(absence) : answer(...answers)
  }

export interface NameServer {
  /** Such as `127.0.0.1:5353`, as settings have it. */
  readonly address: string
  readonly port: number
  /** What was asked until now, in order. */
  readonly queries: ReadonlyArray<Query>
  /** Each query in turn: waits for the next that nobody took. */
  readonly received: Effect.Effect<Query>
}

/** Serves while the scope is open; `script` says for each query how it is replied to. */
export const serve = (script: (query: Query) => Reply) =>
  Effect.gen(function* () {
    const queries: Array<Query> = []
    const received = yield* Queue.unbounded<Query>()
    const repliesTo = (bytes: Buffer, transport: Query["transport"], port: number): ReadonlyArray<Message> => {
      const packet = decode(bytes)
      const question = packet.questions?.[0]
      if (question === undefined) return []
      const query = { transport, name: question.name.toLowerCase(), type: question.type, packet, bytes, port }
      queries.push(query)
      Queue.offerUnsafe(received, query)
      return script(query)(query)
    }
    const { tcp, udp, stranger } = yield* Effect.acquireRelease(open, ({ close }) => close)
    udp.on("message", (bytes, { port, address }) => {
      for (const { bytes: reply, by } of repliesTo(bytes, "udp", port)) (by === "stranger" ? stranger : udp).send(reply, port, address)
    })
    tcp.on("connection", (socket) => {
      let received = Buffer.alloc(0)
      socket.on("data", (chunk: Buffer) => {
        received = Buffer.concat([received, chunk])
        while (received.length >= 2 && received.length >= 2 + received.readUInt16BE(0)) {
          const end = 2 + received.readUInt16BE(0)
          for (const message of repliesTo(received.subarray(2, end), "tcp", socket.remotePort ?? 0)) write(socket, message)
          received = received.subarray(end)
        }
      })
    })
    const address = tcp.address()
    const port = typeof address === "object" && address !== null ? address.port : 0
    return { address: `127.0.0.1:${port}`, port, queries, received: Queue.take(received) } satisfies NameServer
  })

const write = (socket: TcpSocket, { bytes, by }: Message): void => {
  const length = Buffer.alloc(2)
  length.writeUInt16BE(bytes.length)
  if (by === "halves") socket.end(Buffer.concat([length, bytes.subarray(0, bytes.length / 2)]))
  else socket.write(Buffer.concat([length, bytes]))
}

interface Sockets {
  readonly tcp: Server
  readonly udp: UdpSocket
  readonly stranger: UdpSocket
  readonly close: Effect.Effect<void>
}

/** One port for both: that of TCP, unless it is another's over UDP; then the next. */
const open: Effect.Effect<Sockets> = Effect.callback((resume) => {
  const attempt = () => {
    const connections = new Set<TcpSocket>()
    const tcp = createServer((socket) => {
      connections.add(socket)
      socket.on("error", () => socket.destroy()).once("close", () => connections.delete(socket))
    }).listen(0, "127.0.0.1", () => {
      const address = tcp.address()
      const udp = createSocket("udp4").once("error", () => {
        udp.close()
        tcp.close(attempt)
      })
      udp.bind(typeof address === "object" && address !== null ? address.port : 0, "127.0.0.1", () => {
        const stranger = createSocket("udp4").bind(0, "127.0.0.1")
        const close = Effect.callback<void>((closed) => {
          for (const connection of connections) connection.destroy()
          tcp.close(() => udp.close(() => stranger.close(() => closed(Effect.void))))
        })
        resume(Effect.succeed({ tcp, udp, stranger, close }))
      })
    })
  }
  attempt()
})
