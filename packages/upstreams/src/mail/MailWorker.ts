/** The worker thread that reads messages: receives some `MailRequest`s, posts as many `MailReply`s in the same order. */
import { parentPort } from "node:worker_threads"
import type { MailContent, Unreadable } from "@millrace/core"
import * as MailContents from "./MailContents.ts"
import { PartsInMemory } from "./PartsInMemory.ts"

Object.assign(globalThis, { Blob: PartsInMemory })

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

/** One after another, so that only one is in memory besides its bytes. */
const repliesTo = async (requests: ReadonlyArray<MailRequest>): Promise<ReadonlyArray<MailReply>> => {
  const replies: Array<MailReply> = []
  for (const request of requests) replies.push(await replyTo(request))
  return replies
}

parentPort?.on("message", async (requests: ReadonlyArray<MailRequest>) => parentPort?.postMessage(await repliesTo(requests)))
parentPort?.postMessage("ready")
