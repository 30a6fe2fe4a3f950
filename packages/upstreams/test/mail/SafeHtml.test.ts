import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { safeHtml } from "../../src/mail/SafeHtml.ts"

describe("HTML that may be shown", () => {
  test.each([
    ["text & structure", "<h1>Hi</h1><p>Your <b>code</b> is 1 &lt; 2</p>", "<h1>Hi</h1><p>Your <b>code</b> is 1 &lt; 2</p>"],
    ["tables", '<table width="600"><tr><td align="center" bgcolor="#fff">x</td></tr></table>', undefined],
    ["simple styles", '<p style="color:#333;font-size:14px;text-align:center">x</p>', undefined],
    ["images of the message", '<img src="cid:logo@shop" alt="Logo" /><img src="data:image/png;base64,iVBORw0KGgo=" />', undefined]
  ])("keeps %s", (_, html, expected) => expect(safeHtml(html)).toBe(expected ?? html))

  test.each(["https://shop.test/a?b=1&amp;c=2", "http://shop.test", "mailto:help@shop.test"])(
    "keeps the link %s, without a trace to the page",
    (href) => expect(safeHtml(`<a href="${href}">x</a>`)).toBe(`<a href="${href}" rel="noopener noreferrer nofollow" target="_blank">x</a>`)
  )

  test.each([
    ["a script", "<script>alert(1)</script>"],
    ["a script in pieces", "<scr<script>ipt>x()</scr</script>ipt>"],
    ["an event handler", '<p onclick="alert(1)">x</p>'],
    ["an event handler of an image", "<img src=x onerror=alert(1)>"],
    ["an image from a server", '<img src="https://evil.test/pixel.gif">'],
    ["an image from any scheme", '<img src="//evil.test/pixel.gif">'],
    ["an image from the page's server", '<img src="/pixel.gif">'],
    ["an image of images", '<img srcset="https://evil.test/a 2x">'],
    ["an SVG as an image", '<img src="data:image/svg+xml;base64,PHN2Zz4=">'],
    ["a picture", '<picture><source srcset="https://evil.test/a"></picture>'],
    ["an SVG", '<svg><script>alert(1)</script><image href="https://evil.test/a"/><a xlink:href="javascript:alert(1)">x</a></svg>'],
    ["an SVG in MathML", "<math><mtext><svg><style><img src=x onerror=alert(1)></style></svg></mtext></math>"],
    ["a style sheet", "<style>@import url(https://evil.test/a); body{background:url(https://evil.test/b)}</style>"],
    ["a linked style sheet", '<link rel="stylesheet" href="https://evil.test/a">'],
    ["a style that loads", '<p style="background:url(https://evil.test/a)">x</p>'],
    ["a style that loads by an escape", '<p style="background-color:\\75rl(https://evil.test/a)">x</p>'],
    ["a style that covers the page", '<div style="position:fixed;top:0;left:0;width:100%">x</div>'],
    ["a style with a function", '<p style="color:expression(alert(1))">x</p>'],
    ["a background", '<td background="https://evil.test/a">x</td>'],
    ["a frame", '<iframe src="https://evil.test"></iframe><iframe srcdoc="<script>alert(1)</script>"></iframe>'],
    ["an object", '<object data="https://evil.test"></object><embed src="https://evil.test">'],
    ["media", '<video src="https://evil.test"></video><audio src="https://evil.test"></audio>'],
    ["a form", '<form action="https://evil.test"><input name=a><button formaction="https://evil.test">x</button></form>'],
    ["a meta refresh", '<meta http-equiv="refresh" content="0;url=https://evil.test">'],
    ["a base", '<base href="https://evil.test/">'],
    ["javascript", '<a href="javascript:alert(1)">x</a>'],
    ["javascript with a line break", '<a href="java\nscript:alert(1)">x</a>'],
    ["javascript in entities", '<a href="&#106;avascript:alert(1)">x</a>'],
    ["javascript after a control character", '<a href="\u0001javascript:alert(1)">x</a>'],
    ["vbscript", '<a href="vbscript:msgbox(1)">x</a>'],
    ["data", '<a href="data:text/html,<script>alert(1)</script>">x</a>'],
    ["a link to the page", '<a href="/delete">x</a>'],
    ["a ping", '<a ping="https://evil.test">x</a>'],
    ["a comment of old browsers", "<!--[if IE]><script>alert(1)</script><![endif]-->"],
    ["a noscript", '<noscript><p title="</noscript><img src=x onerror=alert(1)>"></noscript>'],
    ["a text area", '<textarea><img title="</textarea><img src=x onerror=alert(1)>"></textarea>'],
    ["a template", "<template><script>alert(1)</script></template>"],
    ["a class or an id of the page", '<p class="modal" id="logout">x</p>']
  ])("removes %s", (_, html) =>
    expect(safeHtml(html)).not.toMatch(
      /<script|alert|evil|javascript|vbscript|expression|url\(|position|on\w+=|<(?!\/?(?:p|a|td|div)\b)|href|src|class|id=/iu
    )
  )

  /** Pieces that break parsers apart, in any order. */
  const piece = fc.oneof(
    fc.constantFrom("<", ">", '"', "'", "=", "/", "&", "`", "<!--", "-->", "<![CDATA[", "]]>", "\0", "\n", " "),
    fc.constantFrom(
      "<svg>",
      "</svg>",
      "<math>",
      "<style>",
      "</style>",
      "<title>",
      "<textarea>",
      "</textarea>",
      "<noscript>",
      "<table>",
      "<p ",
      "<a "
    ),
    fc.constantFrom(
      "<script>",
      "</script>",
      "<img ",
      "src=",
      "href=",
      "style=",
      "onerror=",
      "alert(1)",
      "javascript:",
      "https://evil.test",
      "url(",
      "x"
    ),
    fc.string({ maxLength: 4 })
  )

  test("whatever comes, what is left are allowed tags with quoted, allowed attributes, and it stays the same when cleaned again", () => {
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 30 }), (pieces) => {
        const html = safeHtml(pieces.join(""))
        expect(html.replaceAll(/<\/?[a-z][a-z0-9]*(?: [a-z-]+(?:="[^"<>]*")?)*(?: \/)?>/gu, "")).not.toMatch(/[<>]/u)
        for (const [, name = ""] of html.matchAll(/<([a-z0-9]+)/gu)) expect(["p", "a", "img", "table"]).toContain(name)
        for (const [tag] of html.matchAll(/<[^>]*>/gu))
          expect(tag).not.toMatch(/\son\w+=|(?:href|src)="(?!https?:|mailto:|cid:|data:image)/iu)
        expect(safeHtml(html)).toBe(html)
      }),
      { numRuns: 300, seed: 1 }
    )
  })
})
