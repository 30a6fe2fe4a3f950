/** A real SMTP server on loopback, for a test. */
import { MailVerdicts, SmtpServer } from "@millrace/upstreams/mail"
import { Effect, type Layer } from "effect"
import type { Mailboxes } from "./Mailboxes.ts"

export const DOMAIN = "mail.example.test"
export const ANNA = `anna@${DOMAIN}`
export const BERT = `bert@${DOMAIN}`

export const serve = (
  mailboxes: Mailboxes,
  options: Partial<SmtpServer.Options> = {},
  verdicts: Layer.Layer<MailVerdicts.MailVerdicts> = MailVerdicts.layerNone
) =>
  SmtpServer.listen({ host: "127.0.0.1", port: 0, domain: DOMAIN, ...options }).pipe(
    Effect.provide(mailboxes.layer),
    Effect.provide(verdicts)
  )
