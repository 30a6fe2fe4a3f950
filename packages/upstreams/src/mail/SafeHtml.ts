/** HTML of a message that a page may show: it runs nothing, loads nothing, and sends nothing. */
import sanitize from "sanitize-html"

const TABLE = ["align", "valign", "width", "height", "colspan", "rowspan", "bgcolor", "border", "cellpadding", "cellspacing"]

/** Values without functions, escapes and addresses, so that no style loads anything or covers a page. */
const COLOR = [/^#[0-9a-f]{3,8}$/iu, /^[a-z]{3,20}$/iu, /^rgb\(\s*\d{1,3}\s*,\s*\d{1,3}\s*,\s*\d{1,3}\s*\)$/iu]
const WORD = [/^[a-z-]{2,20}$/iu]
const LENGTH = [/^\d{1,3}(?:\.\d{1,2})?(?:px|pt|em|rem|%)$/iu]

const OPTIONS: sanitize.IOptions = {
  allowedTags: [
    ...[
      "a",
      "abbr",
      "address",
      "article",
      "aside",
      "b",
      "bdi",
      "bdo",
      "big",
      "blockquote",
      "br",
      "caption",
      "center",
      "cite",
      "code",
      "col"
    ],
    ...[
      "colgroup",
      "dd",
      "del",
      "details",
      "dfn",
      "div",
      "dl",
      "dt",
      "em",
      "figcaption",
      "figure",
      "font",
      "footer",
      "h1",
      "h2",
      "h3",
      "h4"
    ],
    ...["h5", "h6", "header", "hr", "i", "img", "ins", "kbd", "li", "main", "mark", "nav", "ol", "p", "pre", "q", "s", "samp", "section"],
    ...[
      "small",
      "span",
      "strike",
      "strong",
      "sub",
      "summary",
      "sup",
      "table",
      "tbody",
      "td",
      "tfoot",
      "th",
      "thead",
      "tr",
      "tt",
      "u",
      "ul"
    ],
    ...["var", "wbr"]
  ],
  // Their text is no text of the message
  nonTextTags: [
    "script",
    "style",
    "textarea",
    "option",
    "noscript",
    "title",
    "template",
    "svg",
    "math",
    "iframe",
    "object",
    "xmp",
    "noembed"
  ],
  allowedAttributes: {
    "*": ["dir", "lang", "title", "style"],
    a: ["href", "rel", "target"],
    font: ["color", "face", "size"],
    img: ["src", "alt", "width", "height"],
    ol: ["start", "type"],
    ...Object.fromEntries(["table", "tbody", "thead", "tfoot", "tr", "td", "th", "col", "colgroup"].map((tag) => [tag, TABLE]))
  },
  allowedStyles: {
    "*": {
      color: COLOR,
      "background-color": COLOR,
      "font-size": [...LENGTH, ...WORD],
      "font-style": WORD,
      "font-weight": [...WORD, /^[1-9]00$/u],
      "text-align": WORD,
      "text-decoration": WORD
    }
  },
  allowedSchemes: ["http", "https", "mailto"],
  // Images within the message alone: a page that asks a server for one tells the sender who reads
  allowedSchemesByTag: { img: ["data", "cid"] },
  allowProtocolRelative: false,
  // Real messages nest tables in tables, but not as deep as a page can break
  nestingLimit: 200,
  // An address without a scheme is of the page that shows the message
  exclusiveFilter: ({ tag, attribs }) => tag === "img" && !IMAGE.test(attribs["src"] ?? ""),
  transformTags: {
    a: (tagName, attribs) => ({
      tagName,
      attribs: LINK.test(attribs["href"] ?? "") ? { ...attribs, rel: "noopener noreferrer nofollow", target: "_blank" } : without(attribs)
    })
  }
}

const LINK = /^(?:https?:\/\/|mailto:)/iu
const IMAGE = /^(?:cid:|data:image\/(?:png|jpeg|gif|webp);base64,[a-z0-9+/=\s]*$)/iu

const without = ({ href: _href, ...attribs }: sanitize.Attributes): sanitize.Attributes => attribs

export const safeHtml = (html: string): string => sanitize(html, OPTIONS)
