/** The operations of proxies: where there are nodes, and a session with one of them. */
import { hash } from "node:crypto"
import { Array, Effect, Schema } from "effect"
import { proxySessionIdOf } from "../Ids.ts"
import { type ProxyNode, ProxyNodes } from "../proxies/ProxyNodes.ts"
import { Mode, Protocol } from "../proxies/ProxySession.ts"
import { type OpenSession, ProxySessions } from "../proxies/ProxySessions.ts"
import { toIso } from "../Timestamp.ts"
import * as Operation from "../work/Operation.ts"
import { InvalidInput, UpstreamNotConfigured, UpstreamUnavailable } from "../work/OperationError.ts"

const UPSTREAM = "proxy"

const unavailable = ({ _tag: reason }: { readonly _tag: string }) => new UpstreamUnavailable({ upstream: UPSTREAM, reason, isolated: true })

const nodes = Effect.mapError(
  ProxyNodes.use(({ list }) => list),
  unavailable
)

/** Fails while no node serves. A state store that does not answer is told by the call itself. */
const configured = ProxyNodes.use(({ list }) => Effect.orElseSucceed(list, () => undefined)).pipe(
  Effect.flatMap((found) => (found?.length === 0 ? Effect.fail(new UpstreamNotConfigured({ upstream: UPSTREAM })) : Effect.void))
)

interface Place {
  readonly country?: string | undefined
  readonly region?: string | undefined
}

const NAMES = new Intl.DisplayNames("en", { type: "region", fallback: "code" })

const countryName = (code: string): string => NAMES.of(code) ?? code

const isSame = (asked: string | undefined, ...names: ReadonlyArray<string | null>): boolean =>
  asked === undefined || names.some((name) => name?.toLowerCase() === asked.toLowerCase())

const isIn = ({ country, region }: Place, node: ProxyNode): boolean =>
  isSame(country, node.country, countryName(node.country)) && isSame(region, node.region)

// locations

const Locations = Schema.Struct({
  locations: Schema.Array(
    Schema.Struct({
      /** ISO 3166-1 alpha-2. */
      country: Schema.String,
      name: Schema.String,
      /** Regions that a session can be asked for. */
      regions: Schema.Array(Schema.String),
      /** Nodes that serve now, and upstream proxies that answer now. */
      available_nodes: Schema.Int,
      protocols: Schema.Array(Protocol)
    })
  )
})

const unique = <A>(values: ReadonlyArray<A>): ReadonlyArray<A> => [...new Set(values)].sort()

const locationsOf = (nodes: ReadonlyArray<ProxyNode>): typeof Locations.Type => ({
  locations: Object.entries(Array.groupBy(nodes, ({ country }) => country))
    .map(([country, there]) => ({
      country,
      name: countryName(country),
      regions: unique(there.flatMap(({ region }) => region ?? [])),
      available_nodes: there.reduce((sum, { members = 1 }) => sum + members, 0),
      protocols: unique(there.flatMap(({ endpoints }) => endpoints.map(({ protocol }) => protocol)))
    }))
    .sort((one, other) => (one.country < other.country ? -1 : 1))
})

const place = Schema.optionalKey(Schema.String.check(Schema.isMaxCodePoints(50)))

export const locations = Operation.make("proxy.locations", {
  summary: "List where there are proxy nodes",
  description:
    "The countries of the nodes that serve now, with the protocols that they speak. `country` is a code such as `DE` or an English name; " +
    "it and `region` select, in any case. The list is empty where no node is.",
  price: 0.1,
  route: { method: "GET", path: "/proxy/locations", query: { country: place, region: place } },
  success: Locations,
  local: true,
  configured,
  check: () => configured,
  run: Effect.fnUntraced(function* (where) {
    return { data: locationsOf((yield* nodes).filter((node) => isIn(where, node))) }
  }),
  example: {
    input: { country: "DE" },
    data: {
      locations: [{ country: "DE", name: "Germany", regions: ["Hesse"], available_nodes: 2, protocols: ["http", "socks5", "socks5h"] }]
    }
  }
})

// sessions

const SessionRecord = Schema.Struct({
  session_id: Schema.String,
  /** The node to connect to. */
  host: Schema.String,
  port: Schema.Int,
  username: Schema.String,
  password: Schema.String,
  protocol: Protocol,
  /** ISO 3166-1 alpha-2. */
  country: Schema.String,
  /** The address that connections leave from; of a rotating session, the first. Of an upstream whose exit is not known, its own. */
  ip: Schema.String,
  expires_at: Schema.String
})

const recordOf = ({ password, session, sessionId }: OpenSession): typeof SessionRecord.Type => {
  const { country, expiresAt, host, ip, port, protocol } = session
  return { session_id: sessionId, host, port, username: sessionId, password, protocol, country, ip, expires_at: toIso(expiresAt) }
}

interface Asked extends Place {
  readonly protocol?: Protocol | undefined
}

/** The protocols, the first that a caller gets who names none. */
const PREFERRED: ReadonlyArray<Protocol> = ["http", "socks5h", "socks5", "https"]

const endpointOf = ({ endpoints }: ProxyNode, protocol: Protocol | undefined) =>
  (protocol === undefined ? PREFERRED : [protocol])
    .map((wanted) => endpoints.find((endpoint) => endpoint.protocol === wanted))
    .find((endpoint) => endpoint !== undefined)

/** The nodes that a caller can have. `InvalidInput` names the first field that leaves none; `UpstreamUnavailable`: all there are dead. */
const candidates = Effect.fnUntraced(function* ({ country, protocol, region }: Asked) {
  const all = yield* nodes
  const there = all.filter((node) => isIn({ country }, node))
  if (there.length === 0 && all.length > 0)
    return yield* new InvalidInput({ field: "country", message: "No proxy node is in this country: see /proxy/locations" })
  const nearby = there.filter((node) => isIn({ region }, node))
  if (nearby.length === 0 && all.length > 0)
    return yield* new InvalidInput({ field: "region", message: "No proxy node is in this region: see /proxy/locations" })
  const able = nearby.filter((node) => endpointOf(node, protocol) !== undefined)
  if (able.length === 0 && all.length > 0)
    return yield* new InvalidInput({ field: "protocol", message: "No proxy node there speaks this protocol: see /proxy/locations" })
  const alive = able.filter(({ members }) => members !== 0)
  if (alive.length === 0) return yield* unavailable({ _tag: "no proxy node serves now" })
  return alive
})

/** One of several, always the same for an id. */
const oneOf = <A>(id: string, all: ReadonlyArray<A>): A | undefined => all[hash("sha256", id, "buffer").readUInt32BE() % all.length]

export const createSession = Operation.make("proxy.createSession", {
  summary: "Open a proxy session",
  description:
    "Answers with a node and credentials, for HTTP (`CONNECT` and plain requests), HTTP over TLS (`https`), or SOCKS 5; with `socks5h` the " +
    "node resolves names. Connections of a `sticky` session all leave from `ip`; those of a `rotating` one, the default, from each address " +
    "of the node in turn. A session ends at `expires_at`, or when its bytes are used up; its connections are closed then. It reaches public " +
    "addresses only, and no mail servers.",
  price: 2,
  route: {
    method: "POST",
    path: "/proxy/sessions",
    body: { country: place, protocol: Schema.optionalKey(Protocol), region: place, mode: Schema.optionalKey(Mode) },
    status: 201
  },
  success: SessionRecord,
  secret: ["password"],
  local: true,
  configured,
  check: (asked) => Effect.andThen(configured, Effect.asVoid(candidates(asked))),
  run: Effect.fnUntraced(function* ({ mode = "rotating", protocol, ...where }, { accountId, requestId, reservationId }) {
    const sessionId = proxySessionIdOf(reservationId)
    const node = oneOf(sessionId, yield* candidates({ protocol, ...where }))
    const endpoint = node === undefined ? undefined : endpointOf(node, protocol)
    if (node === undefined || endpoint === undefined) return yield* unavailable({ _tag: "no proxy node serves now" })
    const { country, exits, host, region } = node
    const ip = mode === "sticky" ? (oneOf(sessionId, exits) ?? exits[0]) : exits[0]
    const terms = { accountId, mode, country, region, host, ip, ...endpoint }
    const open = ProxySessions.use(({ open }) => open(sessionId, terms, { $correlationId: requestId }))
    return { data: recordOf(yield* Effect.mapError(open, unavailable)) }
  }),
  recover: Effect.fnUntraced(function* (reservationId) {
    const found = yield* Effect.mapError(
      ProxySessions.use(({ find }) => find(proxySessionIdOf(reservationId))),
      unavailable
    )
    return found === undefined ? undefined : { data: recordOf(found) }
  }),
  example: {
    input: { country: "DE", protocol: "socks5h", mode: "sticky" },
    data: {
      session_id: "proxy_01M7YKD46JCP6VGMKADN3JSPJP",
      host: "proxy.example.com",
      port: 1080,
      username: "proxy_01M7YKD46JCP6VGMKADN3JSPJP",
      password: "q8vWk0V4rZ3mZ3N2b0m3o9sCq8Qf2yJm4o7bqkq3l1E",
      protocol: "socks5h",
      country: "DE",
      ip: "203.0.113.7",
      expires_at: "2026-11-22T13:00:00.000Z"
    }
  }
})
