/**
 * The verdict: seal, headline with product and brand, one sentence, chip and record, and then what to do (spec §4.4, §4.6). The visitor
 * says by three radio buttons whether the item is bought new or second-hand, or owned; the style shows what belongs to the answer.
 */
import { clockElement, code, cut, supplierText, textsIn, type PageContext } from '../context.ts'
import { fill, html, type Html } from '../html.ts'
import { icon, type IconName } from '../icons.ts'
import type { Texts } from '../languages.ts'
import type { PageTheme } from '../theme.ts'
import { sealPicture, type Seal } from './seals.ts'
import { defaultRole, roles, type Situation, stageOf, type Tone, type Variant, variantsOf } from './situation.ts'

/** A cell of the verdict: a name of few words, and a detail. */
export type CardFact = {
  readonly name: string
  readonly detail?: Html | string | undefined
  readonly mark: 'yes' | 'no' | 'open' | 'wait'
}

/**
 * The words that stand for the places of a text. `brand` is a name from the operator's list, empty without one; `maker` is then a word such
 * as «the maker».
 */
export type Places = Readonly<Record<'this' | 'maker' | 'brand' | 'genuine', string> & Record<string, Html | string>>

/** Returns the words for an item of a maker, and of a brand where the operator lists it. */
export function placesFor(
  context: PageContext,
  {
    kind = 'item',
    theme = null,
  }: { readonly kind?: keyof Texts['kinds'] | undefined; readonly theme?: PageTheme | null },
): Places {
  const { kinds, verdict } = textsIn(context)
  return {
    this: kinds[kind],
    maker: theme?.name ?? verdict.maker,
    brand: theme?.name ?? '',
    genuine: theme === null ? verdict.genuineChip : verdict.genuine,
  }
}

export type VerdictView = {
  readonly situation: Situation
  /** The situation may be another one, so that a buyer waits. */
  readonly inDoubt?: boolean | undefined
  readonly places: Places
  readonly eyebrow: string
  readonly facts: readonly [CardFact, CardFact] | readonly []
  /** Name of the product by its maker: hostile text. */
  readonly name?: string | undefined
  /** Name of the brand in the operator's list. */
  readonly brand?: string | undefined
  /** Takes the place of the sentence. */
  readonly say?: string | undefined
  /** Sentences below the facts. */
  readonly notes?: readonly (Html | string)[] | undefined
  /** Id of a form that the visitor's answer belongs to. */
  readonly form?: string | undefined
  /** Seal of its own. */
  readonly seal?: Seal | undefined
}

/** The verdict of a situation, and the question what the visitor is doing. */
export function verdictCard(context: PageContext, view: VerdictView): Html {
  const variants = variantsOf(textsIn(context), view.situation, view.inDoubt)
  const { tone } = variants[0] as Variant
  const isOne = variants.length === 1
  const only = (variant: Variant) => (isOne ? false : html` data-role="${variant.roles.join(' ')}"`)
  const words = variants.map(
    (variant) =>
      html`<span
        class="word tone-${variant.tone}${isLong(fillText(variant.word, view.places)) && ' long'}"
        ${only(variant)}
        >${fill(variant.word, view.places)}</span
      >`,
  )
  const seals = variants.map(
    (variant) =>
      html`<div class="sealed tone-${variant.tone}" ${only(variant)}>${sealPicture(view.seal ?? variant.tone)}</div>`,
  )
  const sentences =
    view.say === undefined
      ? variants.map((variant) => html`<p class="say" ${only(variant)}>${fill(variant.say, view.places)}</p>`)
      : html`<p class="say">${fill(view.say, view.places)}</p>`
  return html`<section
      class="verdict tone-${tone}${stageOf(view.situation) === 'empty' && ' alone'}"
      ${tone === 'stop' && html` role="alert"`}
      aria-labelledby="verdict"
    >
      ${seals}
      <p class="label">${view.eyebrow}</p>
      <h1 id="verdict" ${view.brand !== undefined && html` class="branded"`}>
        ${words}${view.brand !== undefined && html`<span class="maker-name">${view.brand}</span>`}
      </h1>
      ${
        view.name !== undefined &&
        html`<p class="named">
          <span class="tab">${textsIn(context).verdict.named}</span
          ><span class="thing">${supplierText(cut(view.name, longestName))}</span>
        </p>`
      }
      ${sentences} ${factList(context, view.facts)}
      ${(view.notes ?? []).map((note) => html`<p class="caveat">${note}</p>`)}
    </section>
    ${!isOne && roleChoice(context, view.situation, view.form)}`
}

type PlainVerdict = {
  readonly tone: Tone
  readonly title: string
  readonly text: Html | string
  readonly more?: string | undefined
  /** A warning below the sentences. */
  readonly note?: string | undefined
  readonly eyebrow?: string | undefined
  readonly seal?: Seal | undefined
}

/** A headline of the pages that are no situation, such as that of a broken link. */
export function plainVerdict({ tone, title, text, more, note, eyebrow, seal: shape }: PlainVerdict): Html {
  return html`<section
    class="verdict alone tone-${tone}"
    ${tone === 'stop' && html` role="alert"`}
    aria-labelledby="verdict"
  >
    <div class="sealed tone-${tone}">${sealPicture(shape ?? tone)}</div>
    ${eyebrow !== undefined && html`<p class="label">${eyebrow}</p>`}
    <h1 id="verdict"><span class="word tone-${tone}${isLong(title) && ' long'}">${title}</span></h1>
    <p class="say">${text}</p>
    ${more !== undefined && html`<p class="say">${more}</p>`}
    ${note !== undefined && html`<p class="caveat">${note}</p>`}
  </section>`
}

/** Lists the steps of each role. `below` stands under them, such as how to tap. */
export function nextSteps(
  context: PageContext,
  { situation, places }: Pick<VerdictView, 'situation' | 'places'>,
  below: Html | false = false,
): Html {
  const variants = variantsOf(textsIn(context), situation)
  return html`${variants.map(
    (variant) =>
      html`<section class="next card" ${variants.length > 1 && html` data-role="${variant.roles.join(' ')}"`}>
        <h2>${variant.title}</h2>
        ${
          variant.steps.length > 0 &&
          html`<ol class="steps">
            ${variant.steps.map((step) => html`<li><span>${fill(step, places)}</span></li>`)}
          </ol>`
        }
        ${below}
      </section>`,
  )}`
}

function factList(context: PageContext, facts: VerdictView['facts']): Html | false {
  const { chip, record } = textsIn(context).verdict
  if (facts.length === 0) return false
  const names = [chip, record]
  return html`<dl class="facts">
    ${facts.map(
      ({ name, detail, mark }, index) =>
        html`<div>
          ${icon(marks[mark].icon, marks[mark].look)}
          <dt class="vh">${names[index]}</dt>
          <dd>${name}${detail !== undefined && html`<small>${detail}</small>`}</dd>
        </div>`,
    )}
  </dl>`
}

const marks: Readonly<Record<CardFact['mark'], { icon: IconName; look: string }>> = {
  yes: { icon: 'check', look: 'y' },
  no: { icon: 'cross', look: 'n' },
  open: { icon: 'dash', look: 'q' },
  wait: { icon: 'dash', look: 'h' },
}

/** Native radio buttons: they work without a script. Nothing is stored; only a report of the visitor sends the answer. */
function roleChoice(context: PageContext, situation: Situation, form?: string): Html {
  const { verdict } = textsIn(context)
  const labels = { new: verdict.roleNew, second: verdict.roleSecond, mine: verdict.roleMine }
  const icons = { new: 'tag', second: 'swap', mine: 'key' } as const
  const chosen = defaultRole(situation)
  return html`<fieldset class="role">
    <legend class="label">${verdict.roles}</legend>
    <div class="tiles">
      ${roles.map(
        (role) =>
          html`<label
            ><input
              type="radio"
              name="for"
              id="for-${role}"
              value="${role}"
              autocomplete="off"
              ${form !== undefined && html` form="${form}"`}
              ${role === chosen && html` checked`}
            />${icon(icons[role])}<span>${labels[role]}</span></label
          >`,
      )}
    </div>
    ${spoken('.verdict .word, .verdict .say')}
  </fieldset>`
}

/** A live region, in which the script repeats what an answer of the visitor shows: the elements of a selector. */
export function spoken(selector: string): Html {
  return html`<div class="vh" role="status" data-spoken="${selector}"></div>`
}

/** Longest name in the verdict, in code points; the frame below holds all of it. */
const longestName = 60

/** A headline is smaller where it is long, or one of its words is wider than a narrow screen. */
function isLong(headline: string): boolean {
  return headline.length > 16 || headline.split(/\s/).some((word) => word.length > 10)
}

/** Fills a headline as text, to know its length. */
function fillText(text: string, places: Places): string {
  return text.replace(/\{(\w+)\}/g, (_, name: string) => (typeof places[name] === 'string' ? places[name] : ''))
}

/** A count of taps, and the unix second at which its link was opened before; null: the link is new. A chip has no clock. */
export type Opened = { readonly counter: number; readonly openedAt: number | null }

/** Writes the tap by what is known of it. */
export function tapFact(context: PageContext, { counter, openedAt }: Opened): CardFact {
  const { verdict } = textsIn(context)
  const tap = code(String(counter))
  const detail =
    openedAt === null
      ? fill(verdict.chipTap, { tap })
      : fill(verdict.chipTapAgain, { tap, time: clockElement(context, openedAt) })
  return { name: verdict.chipGenuine, detail, mark: 'yes' }
}

/** Says why there is no result of the chip. `unchecked`: a tap came, but was not looked at. */
export function uncheckedFact(
  context: PageContext,
  why: 'untapped' | 'incomplete' | 'replayed' | 'unchecked',
): CardFact {
  const { verdict } = textsIn(context)
  const details = {
    untapped: verdict.chipUntapped,
    incomplete: verdict.chipIncomplete,
    replayed: verdict.chipReplayed,
    unchecked: undefined,
  }
  return { name: verdict.chipUnchecked, detail: details[why], mark: 'open' }
}
