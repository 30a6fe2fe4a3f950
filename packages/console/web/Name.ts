/** How the host calls itself: the title of its API. */

let name = "Millrace"

export const toolName = (): string => name

/** Names the tool, and the tab of the browser until a page names it. */
export const nameTool = (title: string): void => {
  name = title
  document.title = title
}
