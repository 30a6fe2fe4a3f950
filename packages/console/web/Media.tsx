/** A file that an answer is or leads to: audio plays, images show, everything can be saved. */
import { useEffect, useState } from "preact/hooks"
import { fileName } from "./FileName.ts"
import { Trouble, Waiting } from "./Parts.tsx"
import { Refused, refusalOf, refusedBy, send } from "./Requests.ts"
import { size } from "./Text.ts"

/** Fetches a file with the proof of who calls, which a plain address could not send, and shows it. */
export const FileAt = ({ path }: { readonly path: string }) => {
  const [state, setState] = useState<Blob | Refused>()
  useEffect(() => {
    const stop = new AbortController()
    setState(undefined)
    const show = (next: Blob | Refused) => stop.signal.aborted || setState(next)
    send({ method: "GET", path, signal: stop.signal }).then(
      (answer) => show(answer.ok && answer.file !== undefined ? answer.file : refusalOf(answer)),
      (error: unknown) => show(refusedBy(error))
    )
    return () => stop.abort()
  }, [path])
  if (state === undefined) return <Waiting lines={1} />
  return state instanceof Refused ? (
    <Trouble refused={state} />
  ) : (
    <Media file={state} name={path.split("?")[0]?.split("/").at(-2) ?? "file"} />
  )
}

export const Media = ({ file, name }: { readonly file: Blob; readonly name: string }) => {
  const [url, setUrl] = useState<string>()
  useEffect(() => {
    const made = URL.createObjectURL(file)
    setUrl(made)
    return () => URL.revokeObjectURL(made)
  }, [file])
  if (url === undefined) return null
  return (
    <div class="media">
      {/* biome-ignore lint/a11y/useMediaCaption: what is spoken is the text of the call */}
      {file.type.startsWith("audio/") ? <audio controls src={url} aria-label="The audio of the answer" /> : null}
      {file.type.startsWith("image/") ? <img src={url} alt="What the call made" /> : null}
      <a href={url} download={fileName(name, file.type)}>
        Save the file
      </a>{" "}
      <span class="hint">
        {file.type.split(";")[0]}, {size(file.size)}
      </span>
    </div>
  )
}
