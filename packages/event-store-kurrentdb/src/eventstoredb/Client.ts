/**
 * The library's client, for what it does well: it finds the node, follows the leader, connects again and shows who calls. The calls
 * themselves are made through the parts that it keeps for those who extend it: its own ones lose bytes of metadata, leave calls open,
 * keep a question that failed once as failed for ever, and reject promises that nobody holds (docs/adr/0011-kurrentdb.md).
 */
import { type ChannelCredentialOptions, EventStoreDBClient } from "@eventstore/db-client"
import persistentService from "@eventstore/db-client/generated/persistent_grpc_pb.js"
import streamsService from "@eventstore/db-client/generated/streams_grpc_pb.js"
import type { Connection } from "../ConnectionString.ts"

export type Streams = InstanceType<typeof streamsService.StreamsClient>
export type PersistentSubscriptions = InstanceType<typeof persistentService.PersistentSubscriptionsClient>

interface Closable {
  readonly close: () => void
}

export class Client extends EventStoreDBClient {
  readonly #channels = new Set<Closable>()
  #isClosed = false

  /** It looks at errors in the background: where it cannot make sense of one, that is no failure of anybody's. */
  contained(): this {
    const { handleError } = this
    this.handleError = (client, error) => handleError(client, error).catch(() => {})
    return this
  }

  streams<A>(body: (client: Streams) => Promise<A>): Promise<A> {
    return this.execute(streamsService.StreamsClient, "millrace", (client) => this.#on(client, body))
  }

  persistentSubscriptions<A>(body: (client: PersistentSubscriptions) => Promise<A>): Promise<A> {
    return this.execute(persistentService.PersistentSubscriptionsClient, "millrace", (client) => this.#on(client, body))
  }

  /** What goes along with a call that the leader has to answer: within `deadline` milliseconds, or as long as it takes. */
  along(deadline?: number) {
    return deadline === undefined
      ? this.callArguments({ requiresLeader: true }, { deadline: Number.POSITIVE_INFINITY })
      : this.callArguments({ requiresLeader: true, deadline })
  }

  /** Breaks off what is under way. The library's own `dispose` leaves the connection open. */
  close(): void {
    this.#isClosed = true
    for (const channel of this.#channels) channel.close()
    this.#channels.clear()
  }

  #on<C extends { readonly getChannel: () => Closable }, A>(client: C, body: (client: C) => Promise<A>): Promise<A> {
    if (this.#isClosed) return Promise.reject(new Error("Closed before it was sent: ECONNREFUSED"))
    this.#channels.add(client.getChannel())
    return body(client)
  }
}

/**
 * gRPC lets clients of one process share a connection where their options are alike. One more millisecond keeps this client apart, from
 * those of the host, which may leave calls open or break them off, and from its own predecessor.
 */
let serial = 0
const SERIALS = 1_000

export const open = (connection: Connection, deadline: number): Client => {
  const { hosts, discover, user, tls, keepAliveInterval, keepAliveTimeout, connectionName } = connection
  const { gossipTimeout, maxDiscoverAttempts, discoveryInterval } = connection
  serial = (serial + 1) % SERIALS
  const client = {
    keepAliveInterval: keepAliveInterval < 0 ? keepAliveInterval : keepAliveInterval + serial,
    keepAliveTimeout,
    defaultDeadline: deadline,
    ...(connectionName === undefined ? {} : { connectionName })
  }
  const discovery = { gossipTimeout, maxDiscoverAttempts, discoveryInterval }
  const [first, ...others] = hosts
  const credentials = credentialsOf(tls)
  const opened = discover
    ? new Client({ ...client, ...discovery, discover: first }, credentials, user)
    : others.length > 0
      ? new Client({ ...client, ...discovery, endpoints: [...hosts] }, credentials, user)
      : new Client({ ...client, endpoint: first }, credentials, user)
  return opened.contained()
}

const credentialsOf = (tls: Connection["tls"]): ChannelCredentialOptions => {
  if (tls === undefined) return { insecure: true }
  const { authority, client, verify } = tls
  return {
    ...(authority === undefined ? {} : { rootCertificate: authority }),
    ...(client === undefined ? {} : { userCertFile: client.certificate, userKeyFile: client.key }),
    ...(verify ? {} : { verifyOptions: { rejectUnauthorized: false } })
  }
}
