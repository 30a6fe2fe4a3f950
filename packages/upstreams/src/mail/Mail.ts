/** Temporary mail: an SMTP server, the verdicts on its messages, and the reader of what they say. */
export * as MailParser from "./MailParser.ts"
export * as MailVerdicts from "./MailVerdicts.ts"
export * as SmtpServer from "./SmtpServer.ts"
