/** The `Link` header of a page: its first, previous, next and last page. RFC 8288. */
import type { Operation } from "@millrace/core"

/** `url` is that of the request; the links keep its other query parameters. */
export const linkOf = (url: string, { number, size, total }: Operation.Page): string => {
  const [path = "", search = ""] = url.split("?", 2)
  const last = Math.max(1, Math.ceil(total / size))
  const to = (page: number, rel: string): string => {
    const query = new URLSearchParams(search)
    query.set("page", String(page))
    query.set("per_page", String(size))
    return `<${path}?${query}>; rel="${rel}"`
  }
  return [
    to(1, "first"),
    ...(number > 1 ? [to(Math.min(number - 1, last), "prev")] : []),
    ...(number < last ? [to(number + 1, "next")] : []),
    to(last, "last")
  ].join(", ")
}
