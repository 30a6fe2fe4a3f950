/**
 * An SMTP server that receives mail for inboxes and gives it to `MailReceiver` (RFC 5321). It acknowledges a message only when it is durable
 * for each recipient, and it never relays: it has no AUTH, and it knows one domain.
 */
import type { MailReceiver } from "@millrace/core"
import { Clock, Context, Duration, Effect, Layer, Schema, type Scope } from "effect"
import * as CertificateFiles from "../shared/CertificateFiles.ts"
import type { MailVerdicts } from "./MailVerdicts.ts"
import * as SmtpGate from "./SmtpGate.ts"
import * as SmtpSessions from "./SmtpSessions.ts"

export { BadCertificate, type CertificateFiles } from "../shared/CertificateFiles.ts"
export { layerKeyed as layerKeyedQueueIds, QueueIds } from "./QueueIds.ts"

export interface Options {
  /** The address of an interface, such as `127.0.0.1`, or `::` for all. */
  readonly host: string
  /** 0 for a free one. Senders use 25. */
  readonly port: number
  /** The domain of all inboxes, also the name of the server. Recipients elsewhere are refused with 550. */
  readonly domain: string
  /** Offers STARTTLS. The files are read again when they change. */
  readonly tls?: CertificateFiles.CertificateFiles
  /** TLS from the first byte instead of STARTTLS; true on port 465 by default. Needs `tls`. */
  readonly implicitTls?: boolean
  readonly limits?: Limits
}

export interface Limits {
  /** Bytes of a message; 10 MiB by default. */
  readonly size?: number
  /** Bytes of all messages that are being received, together; beyond it the answer is 451. 128 MiB by default. */
  readonly buffered?: number
  /** Connections at once; 500 by default. */
  readonly connections?: number
  /** Connections at once of one client, which is an IPv4 address or the /64 network of an IPv6 address; 50 by default. */
  readonly connectionsOfClient?: number
  /** New connections of one client; 300 a minute by default. */
  readonly connectionsPerMinute?: number
  /** Recipients of one client, also refused ones; 600 a minute by default. Beyond it the answer is 450. */
  readonly recipientsPerMinute?: number
  /** Recipients of one message; 50 by default. */
  readonly recipients?: number
  /** The longest wait for a byte of the client; 2 minutes by default. */
  readonly idle?: Duration.Input
  /** The longest session; 15 minutes by default. */
  readonly session?: Duration.Input
  /** The time limit of the receiver at RCPT TO; 10 seconds by default. */
  readonly accept?: Duration.Input
  /** The time limit of the receiver for a message; 1 minute by default. */
  readonly receive?: Duration.Input
  /** How long a stop waits for messages that are being received; 10 seconds by default. */
  readonly drain?: Duration.Input
  /** How often the certificate's files are looked at; 10 seconds by default. */
  readonly renew?: Duration.Input
}

/** The address is taken, is not of this machine, or needs rights that the process has not. */
export class CannotListen extends Schema.TaggedError<CannotListen>()("CannotListen", {
  host: Schema.String,
  port: Schema.Int,
  reason: Schema.String
}) {
  override get message(): string {
    return `The SMTP server cannot listen on ${this.host}, port ${this.port}: ${this.reason}`
  }
}

export class SmtpServer extends Context.Service<
  SmtpServer,
  {
    readonly host: string
    /** Where it listens, also when the settings say 0. */
    readonly port: number
    /** Connections now. */
    readonly connections: Effect.Effect<number>
  }
>()("@millrace/upstreams/mail/SmtpServer") {}

type Needs = MailReceiver | MailVerdicts | Scope.Scope

/**
 * Listens until the scope closes. Then new connections get 421, idle sessions end with 421, and messages that are being received get their
 * answer within `drain`.
 */
export const listen = (options: Options): Effect.Effect<SmtpServer["Service"], CannotListen | CertificateFiles.BadCertificate, Needs> =>
  Effect.gen(function* () {
    const { host, port, domain, tls, limits = {} } = options
    const implicitTls = options.implicitTls ?? (port === 465 && tls !== undefined)
    const certificate = tls === undefined ? undefined : yield* CertificateFiles.read(tls)
    if (implicitTls && certificate === undefined) return yield* new CannotListen({ host, port, reason: "implicit TLS needs a certificate" })

    const sessions = yield* SmtpSessions.make(
      {
        domain,
        implicitTls,
        size: limits.size ?? 10 * MIB,
        buffered: limits.buffered ?? 128 * MIB,
        recipientsPerMinute: limits.recipientsPerMinute ?? 600,
        recipients: limits.recipients ?? 50,
        idleMillis: Duration.toMillis(Duration.fromInputUnsafe(limits.idle ?? "2 minutes")),
        acceptLimit: limits.accept ?? "10 seconds",
        receiveLimit: limits.receive ?? "1 minute"
      },
      certificate
    )
    const gate = yield* SmtpGate.open(
      { host, port, implicitTls },
      {
        connections: limits.connections ?? 500,
        connectionsOfClient: limits.connectionsOfClient ?? 50,
        connectionsPerMinute: limits.connectionsPerMinute ?? 300
      },
      sessions.accept
    ).pipe(Effect.mapError((reason) => new CannotListen({ host, port, reason })))

    yield* Effect.addFinalizer(() => {
      gate.refuseAll()
      sessions.close()
      return Effect.timeoutOption(gate.emptied, limits.drain ?? "10 seconds")
    })
    yield* Effect.forkScoped(watch(gate, sessions, Duration.toMillis(Duration.fromInputUnsafe(limits.session ?? "15 minutes"))))
    if (tls !== undefined && certificate !== undefined)
      yield* Effect.forkScoped(CertificateFiles.follow("The SMTP server", tls, certificate, limits.renew ?? "10 seconds", sessions.renew))
    return { host, port: gate.port, connections: Effect.sync(gate.size) }
  })

export const layer = (
  options: Options
): Layer.Layer<SmtpServer, CannotListen | CertificateFiles.BadCertificate, MailReceiver | MailVerdicts> =>
  Layer.effect(SmtpServer, listen(options))

const MIB = 1024 * 1024

/** A session whose time is over ends with 421; a client that does not leave after that, or that never began a session, is dropped. */
const GRACE = 10_000

type Sessions = Effect.Success<ReturnType<typeof SmtpSessions.make>>

const watch = (gate: SmtpGate.Gate, sessions: Sessions, longest: number) =>
  Effect.gen(function* () {
    const now = yield* Clock.currentTimeMillis
    sessions.endOlderThan(now - longest)
    gate.dropOlderThan(now - longest - GRACE)
  }).pipe(Effect.delay("5 seconds"), Effect.forever)
