/** The name under which an answer that is a file is saved. */

const ENDS: Readonly<Record<string, string>> = {
  "audio/mpeg": ".mp3",
  "audio/wav": ".wav",
  "image/png": ".png",
  "image/jpeg": ".jpg",
  "message/rfc822": ".eml",
  "text/html": ".html"
}

/** A name with the end that its media type has, where it has a usual one. */
export const fileName = (name: string, mediaType: string): string => name + (ENDS[mediaType.split(";")[0] ?? ""] ?? "")

/** The name of an answer, by the media types that the contract gives; undefined where it is JSON, or nothing. */
export const answerName = (mediaTypes: ReadonlyArray<string>): string | undefined => {
  const [first, ...others] = mediaTypes
  if (first === undefined || mediaTypes.includes("application/json")) return undefined
  return others.length === 0 ? fileName("answer", first) : "answer"
}
