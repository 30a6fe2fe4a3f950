/**
 * A gRPC client of one node or cluster that uses the messages of the library. It finds the leader, follows redirections, sends
 * credentials, and leaves no socket open. docs/adr/0011-kurrentdb.md explains why the library's own client is not used.
 */
import gossipService from "@eventstore/db-client/generated/gossip_grpc_pb.js"
import gossip from "@eventstore/db-client/generated/gossip_pb.js"
import shared from "@eventstore/db-client/generated/shared_pb.js"
import streamsService from "@eventstore/db-client/generated/streams_grpc_pb.js"
import {
  CallCredentials,
  type CallOptions,
  ChannelCredentials,
  type ClientReadableStream,
  type ClientWritableStream,
  Client as Grpc,
  Metadata
} from "@grpc/grpc-js"
import type { Address, Connection } from "../ConnectionString.ts"
import { AppendStream } from "./AppendStream.ts"
import { cancelledWith } from "./Cancelling.ts"
import { leaderOf } from "./Fault.ts"
import { Sockets } from "./Sockets.ts"

/** A call of the protocol. */
export interface Method<Question, Answer> {
  readonly path: string
  readonly requestSerialize: (question: Question) => Buffer
  readonly responseDeserialize: (bytes: Buffer) => Answer
}

export type Tell<Answer> = (error: Error | null, answer?: Answer) => void

const { batchAppend } = streamsService.StreamsService

/** Calls to the leader. All except {@link Calls.follow} and {@link Calls.appends} have a deadline. */
export class Calls {
  /** The appends of the batch call. Undefined once the node has answered that it has no such call. */
  appends: AppendStream | undefined = new AppendStream(() => this.#batch())
  readonly #grpc: Grpc
  readonly #name: string
  readonly #user: CallOptions
  readonly #deadline: number

  constructor(grpc: Grpc, name: string, user: CallOptions, deadline: number) {
    this.#grpc = grpc
    this.#name = name
    this.#user = user
    this.#deadline = deadline
  }

  send<Question, Answer>(method: Method<Question, Answer>, tell: Tell<Answer>): ClientWritableStream<Question> {
    const { path, requestSerialize, responseDeserialize } = method
    return this.#grpc.makeClientStreamRequest(path, requestSerialize, responseDeserialize, this.#metadata(), this.#options(), tell)
  }

  read<Question, Answer>(method: Method<Question, Answer>, question: Question, options = this.#options()): ClientReadableStream<Answer> {
    const { path, requestSerialize, responseDeserialize } = method
    return this.#grpc.makeServerStreamRequest(path, requestSerialize, responseDeserialize, question, this.#metadata(), options)
  }

  /** As {@link read}, without a deadline. */
  follow<Question, Answer>(method: Method<Question, Answer>, question: Question): ClientReadableStream<Answer> {
    return this.read(method, question, this.#user)
  }

  /** Accepts no more calls. Calls under way may end. */
  retire(): void {
    this.appends?.retire()
    this.#grpc.close()
  }

  #batch() {
    const { path, requestSerialize, responseDeserialize } = batchAppend
    return this.#grpc.makeBidiStreamRequest(path, requestSerialize, responseDeserialize, this.#metadata(), this.#user)
  }

  #metadata(): Metadata {
    const metadata = new Metadata()
    metadata.set("connection-name", this.#name)
    metadata.set("requires-leader", "true")
    return metadata
  }

  #options(): CallOptions {
    return { ...this.#user, deadline: after(this.#deadline) }
  }
}

/** gRPC compares deadlines with the machine's clock, even if Effect uses another clock. Infinity is no deadline. */
const after = (millis: number): Date | number => (millis === Number.POSITIVE_INFINITY ? millis : new Date(Date.now() + millis))

/** The longest time of a timer in milliseconds. Node takes a longer one as one millisecond. */
const LONGEST = 2 ** 31 - 1

/** The largest message in bytes. Other programs can store events of up to 16 MB. */
const LARGEST = 17 << 20

export class Client {
  readonly #connection: Connection
  readonly #deadline: number
  readonly #credentials: ChannelCredentials
  readonly #user: CallOptions
  readonly #sockets: Sockets
  readonly #closing = new AbortController()
  #calls: Promise<Calls> | undefined

  /** Connects at the first call. `deadline`: milliseconds for each call except {@link Calls.follow}. */
  constructor(connection: Connection, deadline: number) {
    this.#connection = connection
    this.#deadline = deadline
    this.#credentials = credentialsOf(connection.tls)
    // Without TLS, anyone on the network could read the credentials
    this.#user = connection.tls === undefined ? {} : userOf(connection.user)
    this.#sockets = new Sockets(this.#credentials)
  }

  async on<A>(body: (calls: Calls) => Promise<A>): Promise<A> {
    const calls = await this.#connected()
    try {
      return await body(calls)
    } catch (error) {
      const leader = leaderOf(error)
      if (leader !== undefined) await this.#redirect(calls, leader)
      throw error
    }
  }

  /** Ends the calls under way. */
  close(): void {
    this.#closing.abort()
    this.#calls?.then(
      (calls) => calls.retire(),
      () => {}
    )
    this.#sockets.close()
  }

  async #connected(): Promise<Calls> {
    this.#requireOpen()
    this.#calls ??= this.#find().then((address) => this.#connect(address))
    const calls = this.#calls
    try {
      const connected = await calls
      this.#requireOpen()
      return connected
    } catch (error) {
      if (this.#calls === calls) this.#calls = undefined
      throw error
    }
  }

  #requireOpen(): void {
    if (this.#closing.signal.aborted) throw new Error("The client was closed before the call was sent: ECONNREFUSED")
  }

  #connect({ address, port }: Address): Calls {
    const { connectionName = "millrace" } = this.#connection
    const grpc = new Grpc(`${address}:${port}`, this.#sockets, this.#channel())
    return new Calls(grpc, connectionName, this.#user, this.#deadline)
  }

  /** Connects to the leader, unless another redirected call has done so already. */
  async #redirect(from: Calls, leader: Address): Promise<void> {
    const current = this.#calls
    if (current === undefined || this.#closing.signal.aborted || (await current) !== from || this.#calls !== current) return
    this.#calls = Promise.resolve(this.#connect(leader))
    from.retire()
  }

  #channel() {
    const { keepAliveInterval, keepAliveTimeout } = this.#connection
    return {
      "grpc.keepalive_time_ms": keepAliveInterval < 0 ? LONGEST : keepAliveInterval,
      "grpc.keepalive_timeout_ms": keepAliveTimeout < 0 ? LONGEST : keepAliveTimeout,
      "grpc.max_receive_message_length": LARGEST
    }
  }

  /** Returns the only node, or the first leader that any of the seeds names. A silent seed causes no delay. */
  async #find(): Promise<Address> {
    const { hosts, discover, maxDiscoverAttempts, discoveryInterval } = this.#connection
    const [first, ...others] = hosts
    if (!discover && others.length === 0) return first
    for (let attempt = 0; attempt < maxDiscoverAttempts; attempt++) {
      this.#requireOpen()
      const found = new AbortController()
      const either = AbortSignal.any([found.signal, this.#closing.signal])
      try {
        return await Promise.any(hosts.map((seed) => this.#askForLeader(seed, either)))
      } catch {
        await new Promise((resolve) => setTimeout(resolve, discoveryInterval))
      } finally {
        found.abort()
      }
    }
    throw new Error(`Failed to discover a leader in ${maxDiscoverAttempts} attempts`)
  }

  #askForLeader({ address, port }: Address, signal: AbortSignal): Promise<Address> {
    const sockets = new Sockets(this.#credentials)
    const grpc = new Grpc(`${address}:${port}`, sockets, this.#channel())
    const { path, requestSerialize, responseDeserialize } = gossipService.GossipService.read
    const deadline = after(this.#connection.gossipTimeout * 1_000)
    const asked = new Promise<Address>((resolve, reject) => {
      const tell: Tell<gossip.ClusterInfo> = (error, info) => {
        const leader = info === undefined ? undefined : leaderAmong(info)
        if (leader === undefined) reject(error ?? new Error("The node knows no leader"))
        else resolve(leader)
      }
      const question = new shared.Empty()
      cancelledWith(signal, grpc.makeUnaryRequest(path, requestSerialize, responseDeserialize, question, { deadline }, tell))
    })
    return asked.finally(() => {
      grpc.close()
      sockets.close()
    })
  }
}

const { LEADER } = gossip.MemberInfo.VNodeState

const leaderAmong = (info: gossip.ClusterInfo): Address | undefined => {
  const leader = info.getMembersList().find((member) => member.getIsAlive() && member.getState() === LEADER)
  const place = leader?.getHttpEndPoint()
  return place && { address: place.getAddress(), port: place.getPort() }
}

const credentialsOf = (tls: Connection["tls"]): ChannelCredentials => {
  if (tls === undefined) return ChannelCredentials.createInsecure()
  const { authority = null, client, verify } = tls
  const { certificate = null, key = null } = client ?? {}
  return ChannelCredentials.createSsl(authority, key, certificate, verify ? {} : { rejectUnauthorized: false })
}

const userOf = (user: Connection["user"]): CallOptions => {
  if (user === undefined) return {}
  const authorization = `Basic ${Buffer.from(`${user.username}:${user.password}`).toString("base64")}`
  const credentials = CallCredentials.createFromMetadataGenerator((_, tell) => {
    const metadata = new Metadata()
    metadata.set("authorization", authorization)
    tell(null, metadata)
  })
  return { credentials }
}
