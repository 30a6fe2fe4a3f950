/** Why the site does not play a video: by its status, and by the English sentences beside it, since one status stands for many reasons. */
import type { DownloadUnavailable } from "@millrace/core"
import { Utils, YTNodes } from "youtubei.js"

export interface Told {
  readonly status: string
  readonly reason: string
}

/** `gone`: there is no such video, or no longer. `bot`: the site takes this host for a robot, so the reply says nothing of the video. */
export type Verdict = "playable" | "gone" | "bot" | DownloadUnavailable["reason"]

interface Status {
  readonly status?: string
  readonly reason?: string
  readonly error_screen?: { readonly subreason?: { readonly text?: string | undefined } } | { readonly type: string } | null
}

export const toldOf = (status: Status | undefined): Told => {
  const screen = status?.error_screen
  const more = screen instanceof YTNodes.PlayerErrorMessage ? screen.subreason.text : undefined
  return { status: status?.status ?? "", reason: [status?.reason, more].filter((text) => text !== undefined && text !== "").join(". ") }
}

/** The library throws what it is told of a video that does not exist. */
export const toldByError = (cause: unknown): Told | undefined => {
  const info: unknown = cause instanceof Utils.InnertubeError ? cause.info : undefined
  return typeof info === "object" && info !== null && "status" in info && info.status === "ERROR" ? toldOf(info as Status) : undefined
}

/** The first that fits counts. */
const REASONS: ReadonlyArray<readonly [RegExp, Verdict]> = [
  [/not a bot|unusual traffic/iu, "bot"],
  [/members?[- ]only|join this channel|members on level/iu, "members_only"],
  [/\bprivate\b/iu, "private"],
  [/\bcountry\b|\bregion\b|\byour location\b/iu, "region_blocked"],
  [/\bage\b|age-restricted|inappropriate for some/iu, "age_restricted"],
  [/processing this video|premieres|will begin|check back later/iu, "upcoming"],
  [/removed|terminated|no longer available|does(n't| not) exist|deleted/iu, "gone"]
]

const STATUSES: Readonly<Record<string, Verdict>> = {
  OK: "playable",
  ERROR: "gone",
  LIVE_STREAM_OFFLINE: "upcoming",
  AGE_CHECK_REQUIRED: "age_restricted",
  AGE_VERIFICATION_REQUIRED: "age_restricted"
}

export const verdictOf = ({ reason, status }: Told): Verdict => {
  if (status === "OK") return "playable"
  return REASONS.find(([pattern]) => pattern.test(reason))?.[1] ?? STATUSES[status] ?? "unavailable"
}
