/** The sessions of an SMTP server by `smtp-server`: what it offers, and what it answers to RCPT TO and DATA. */
import type { Socket } from "node:net"
import { TLSSocket } from "node:tls"
import { clientOf } from "@millrace/core"
import { Clock, Effect, FiberSet, Result } from "effect"
import { SMTPServer, type SMTPServerOptions, type SMTPServerSession } from "smtp-server"
import type { Certificate } from "../shared/CertificateFiles.ts"
import { Rate } from "./Rate.ts"
import { CLOSING, type Refusal, TOO_LONG, TOO_MANY_REFUSED, TOO_OFTEN } from "./SmtpAnswers.ts"
import * as SmtpTransactions from "./SmtpTransactions.ts"

export interface SessionOptions extends SmtpTransactions.TransactionOptions {
  readonly implicitTls: boolean
  /** Recipients of one client a minute. */
  readonly recipientsPerMinute: number
  /** Recipients of one message. */
  readonly recipients: number
  /** Milliseconds without a byte from the client. */
  readonly idleMillis: number
}

interface Session {
  /** Milliseconds since 1970. */
  readonly since: number
  /** RCPT TO that were refused. */
  refused: number
  /** Between DATA and its answer. */
  receiving: boolean
}

/** Refused recipients of a session, after which it ends: nobody tries addresses. */
const MAX_REFUSED = 20

/** Longer commands end the session. The longest real ones are addresses in UTF-8. */
const MAX_COMMAND = 2_048

/** Commands that `smtp-server` has and no sender needs. */
const WITHHELD = ["AUTH", "XCLIENT", "XFORWARD", "WIZ", "SHELL", "KILL"]

export const make = Effect.fnUntraced(function* (options: SessionOptions, certificate: Certificate | undefined) {
  const clock = yield* Clock.Clock
  const fork = yield* FiberSet.makeRuntime<never>()
  const transactions = yield* SmtpTransactions.make(options)
  const rate = new Rate(options.recipientsPerMinute)
  const sessions = new Map<string, Session>()
  let closing = false

  const server = new SMTPServer({
    ...offered(options, certificate),
    onConnect: (session, callback) => {
      sessions.set(session.id, { since: clock.currentTimeMillisUnsafe(), refused: 0, receiving: false })
      callback(null)
    },
    onClose: ({ id }) => sessions.delete(id),
    onRcptTo: ({ address }, session, callback) => {
      if (!rate.take(clientOf(session.remoteAddress), clock.currentTimeMillisUnsafe())) return callback(TOO_OFTEN)
      const answer = (refusal: Refusal | null) => {
        const state = sessions.get(session.id)
        callback(refusal)
        if (refusal?.responseCode === 550 && state !== undefined && ++state.refused >= MAX_REFUSED) end(session.id, TOO_MANY_REFUSED)
      }
      const outcome = Effect.result(transactions.recipient(address, declaredSize(session)))
      fork(Effect.map(outcome, (result) => answer(Result.isFailure(result) ? result.failure : null)))
    },
    onData: (stream, session, callback) => {
      const state = sessions.get(session.id)
      if (state !== undefined) state.receiving = true
      const answer = (result: Result.Result<SmtpTransactions.Taken, Refusal | "ended" | "endless">) => {
        if (state !== undefined) state.receiving = false
        if (Result.isSuccess(result)) {
          if (!sessions.has(session.id)) result.success.unanswered()
          callback(null, `OK queued as ${result.success.queueId}`)
        } else if (result.failure === "endless") return end(session.id, TOO_LONG)
        else if (result.failure !== "ended") callback(result.failure)
        if (closing) end(session.id, CLOSING)
      }
      fork(Effect.map(Effect.result(transactions.message(stream, envelopeOf(session))), answer))
    }
  })
  // Of connections that broke: the library has closed them
  server.on("error", () => undefined)

  /** Ends a session with 421. */
  const end = (id: string, text: string): void => {
    for (const connection of server.connections) if (connection.id === id) connection.send(421, text)
  }
  const endAll = (which: (session: Session | undefined) => boolean, text: string): void => {
    for (const connection of [...server.connections]) if (which(sessions.get(connection.id))) connection.send(421, text)
  }

  return {
    /** Begins a session, and returns the socket to destroy for its end. */
    accept: (socket: Socket): Socket => {
      if (options.implicitTls) return secured(socket, server)
      server.connect(socket)
      return socket
    },
    /** Ends what is idle with 421, and the others as soon as their message has its answer. */
    close: () => {
      closing = true
      server.close()
      endAll((session) => session?.receiving !== true, CLOSING)
    },
    /** Ends the sessions that began before an instant, in milliseconds since 1970. */
    endOlderThan: (instant: number) => endAll((session) => session !== undefined && session.since < instant, TOO_LONG),
    renew: (next: Certificate) => server.updateSecureContext({ ...next })
  }
})

/** Begins a session once the TLS handshake is done. */
const secured = (socket: Socket, server: SMTPServer): Socket => {
  const secureContext = server.secureContext.get("*")
  const secure = new TLSSocket(socket, { isServer: true, ...(secureContext === undefined ? {} : { secureContext }) })
  const fail = () => secure.destroy()
  secure.on("error", fail).on("_tlsError", fail)
  secure.once("secure", () => server.connect(secure))
  return secure
}

const offered = (options: SessionOptions, certificate: Certificate | undefined): SMTPServerOptions => ({
  name: options.domain,
  banner: "receives mail for its own mailboxes only",
  secure: options.implicitTls,
  // The handshake of implicit TLS is before the session
  secured: options.implicitTls,
  ...(certificate ?? {}),
  minVersion: "TLSv1.2",
  disabledCommands: certificate === undefined || options.implicitTls ? [...WITHHELD, "STARTTLS"] : WITHHELD,
  size: options.size,
  maxRecipients: options.recipients,
  maxCommandLength: MAX_COMMAND,
  socketTimeout: options.idleMillis,
  hideENHANCEDSTATUSCODES: false,
  disableReverseLookup: true,
  logger: false
})

/** By the parameter SIZE of MAIL FROM; 0 without it. */
const declaredSize = ({ envelope }: SMTPServerSession): number => {
  const args = envelope.mailFrom === false ? undefined : envelope.mailFrom.args
  return typeof args === "object" && "SIZE" in args && typeof args.SIZE === "string" ? Number(args.SIZE) : 0
}

const envelopeOf = ({ envelope, hostNameAppearsAs, remoteAddress }: SMTPServerSession): SmtpTransactions.Envelope => ({
  sender: envelope.mailFrom === false || envelope.mailFrom.address === "" ? null : envelope.mailFrom.address,
  recipients: envelope.rcptTo.map(({ address }) => address),
  remoteAddress,
  helo: hostNameAppearsAs
})
