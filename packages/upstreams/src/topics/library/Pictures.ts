/** What to draw, paint, render or photograph. */
import type { Topic } from "../Topic.ts"

export const pictures: ReadonlyArray<Topic> = [
  {
    category: "Portraits",
    templates: [
      "Close-up portrait of {subject}, soft window light from the left, shallow depth of field, the mood {mood}.",
      "Full-length portrait of {subject} at work, surrounded by the tools of a {role}, painted in the style of {style}.",
      "Black and white photograph of {subject} looking straight at the camera, every line of the face visible, plain dark backdrop.",
      "A family of four generations gathered in {place}, natural poses, late afternoon sun, shot on 35 mm film.",
      "Double exposure: the profile of {subject} filled with the skyline of {place} at dusk.",
      "Official portrait of {subject} as a ruler of {period}, heavy brocade, a symbol of {topic} in one hand.",
      "Candid street portrait of a {role} in {place}, caught mid-laugh, passers-by blurred behind.",
      "Passport-style row of six portraits of {subject}, each with another expression, from {mood} to its opposite."
    ]
  },
  {
    category: "Product photography",
    templates: [
      "Studio shot of {product} on a seamless {palette} background, one large softbox above, crisp shadow underneath.",
      "{product} on a kitchen table in the morning, crumbs and coffee beside it, as if its owner had just stepped away.",
      "Exploded view of {product}: each part floating in its place, made of {material}, thin labels, white background.",
      "Macro detail of {material} on {product}, raking light that shows the texture.",
      "{product} splashing into clear water, frozen at 1/8000 of a second, droplets in {palette}.",
      "Flat lay seen from above: {product} with five things that a {role} carries every day.",
      "Hero image for a shop window: {product} on a stone plinth, decorated for {occasion}, empty space on the right for text.",
      "Before and after, side by side: a desk without {product} in chaos, the same desk with it in order."
    ]
  },
  {
    category: "Landscapes and nature",
    templates: [
      "Wide view over {place} at first light, mist in the valleys, a single path leading in.",
      "The coast of {place} in a winter storm, oil on canvas with thick brush strokes, {palette}.",
      "A {animal} crossing a frozen lake, tiny against the mountains, long shadows.",
      "The same tree in {place} in four seasons, arranged as a grid of four pictures.",
      "Night sky above {place}, the Milky Way reflected in still water, no lights of people anywhere.",
      "Botanical plate of a plant that grows only in {place}: root, leaf, flower and seed, with handwritten notes.",
      "Underwater scene near {place}: a {animal} gliding through shafts of sunlight, kelp on both sides.",
      "Satellite view of an invented river delta, its channels forming the shape of {subject}."
    ]
  },
  {
    category: "Character design",
    templates: [
      "Turnaround sheet of {character}: front, side and back, neutral pose, flat colours, notes on {material} of the clothes.",
      "{character} as a child, an adult and in old age, standing shoulder to shoulder, one object kept through all three.",
      "A villain whose look hides it: {character} dressed as a kindly {role}, with one detail that is wrong.",
      "Expression sheet for {character}: joy, fear, doubt, anger, relief and {mood}, head and shoulders only.",
      "A robot built for {goal} from parts found in {place}, worn paint, stickers from its former owners.",
      "Silhouettes of twelve possible designs for {character}, each recognisable without any detail inside.",
      "The travelling companion of {character}: a {animal} that carries their luggage, harness made of {material}.",
      "Costume study: what a {role} of {period} would wear if magic had replaced metal."
    ]
  },
  {
    category: "Illustration and storybooks",
    templates: [
      "Watercolour of a {animal} who keeps a shop for {product}, warm lamp light, room for two lines of text below.",
      "Cover of a picture book about {topic}, hand-lettered title, for children of {age} years.",
      "Map on aged paper of the land of {name}, with a sea monster, a mountain pass and a warning in the margin.",
      "Editorial illustration for an article on {topic}: one clear metaphor, no text, {palette}.",
      "Paper-cut scene in three layers: {subject} in front, {place} behind, a large moon.",
      "A double page where {character} looks for a lost key; hide twenty small things that begin with the letter S.",
      "Comic strip of three panels in which {character} misunderstands {topic}, and the last panel turns it around.",
      "Woodcut in two colours showing the moment before {subject} opens the door."
    ]
  },
  {
    category: "Logos and icons",
    templates: [
      "Logo for {company}, which works in {industry}: one continuous line, legible at 16 pixels, black on white.",
      "Set of nine icons for an app about {topic}, the same stroke width, rounded corners, no gradients.",
      "Monogram of the initials of {name} that can be stamped into {material}.",
      "Mascot for {company}: a {animal} with a calm face, drawn from at most eight simple shapes.",
      "Badge for people who completed {goal}, in the style of a national park patch.",
      "Wordmark {name} where one letter is replaced by {subject}, without losing the reading.",
      "Redraw the crest of a {industry} guild from {period} as a modern flat emblem in {palette}.",
      "Favicon idea for a site on {topic}: a single glyph, high contrast, no letters."
    ]
  },
  {
    category: "Interiors and architecture",
    templates: [
      "Reading corner for {audience} in a small flat in {place}, built-in shelves, furniture under {budget} in total.",
      "Cutaway drawing of a house for a {role}: workshop below, bedroom under the roof, a slide between them.",
      "Concrete library on a cliff in {place}, evening, warm light behind tall windows.",
      "An office of {company} without a single desk: where people would sit, talk and think instead.",
      "Restore this idea of a {period} railway station as a covered market, keeping clock and ironwork.",
      "Kitchen in {palette} with a worktop of {material}, seen from the door, breakfast on the table.",
      "Axonometric view of a courtyard where {audience} grow food together, rain barrels and benches included.",
      "Public square in {place} redesigned for walking: show trees, shade, water, and where the buses stop now."
    ]
  },
  {
    category: "Patterns and abstract art",
    templates: [
      "Seamless repeating pattern of {subject} and leaves in {palette}, small scale, for wrapping paper.",
      "Abstract composition that feels like {mood}, only circles and one straight line.",
      "Tilework in the manner of {style}, eightfold symmetry, glazed {material}.",
      "What {topic} would sound like, painted: rhythm as spacing, volume as size, pitch as colour.",
      "Topographic contour lines that slowly become the fur of a {animal}.",
      "Quilt of nine patches, each telling one moment of {occasion}, visible stitches.",
      "Generative art from a flow field, ten thousand thin strokes, ink on cream paper, denser around {subject}.",
      "Endless knot without beginning, carved in {material}, light falling from one side only."
    ]
  }
]
