/** The worker thread that reads messages: receives a `MailRequest`, posts a `MailReply`. */
import { parentPort } from "node:worker_threads"
import type { MailContent, Unreadable } from "@millrace/core"
import * as MailContents from "./MailContents.ts"

export interface MailRequest {
  readonly raw: Uint8Array
  /** The place of an attachment whose bytes are asked for, instead of what the message says. */
  readonly attachment?: number
}

export type MailReply =
  | { readonly read: MailContent | Unreadable }
  /** Null where there is no such attachment. */
  | { readonly bytes: Uint8Array | null }

const replyTo = async ({ raw, attachment }: MailRequest): Promise<MailReply> =>
  attachment === undefined ? { read: await MailContents.read(raw) } : { bytes: (await MailContents.attachment(raw, attachment)) ?? null }

parentPort?.on("message", async (request: MailRequest) => parentPort?.postMessage(await replyTo(request)))
parentPort?.postMessage("ready")
