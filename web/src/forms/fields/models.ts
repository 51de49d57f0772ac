// The models that can be chosen: those of this workflow, then those of each endpoint, with what they cost.

import type { Offer } from '../../api/schemas'
import type { Document } from '../../api/types'
import { fuzzy } from '../../ui/Listbox'

export interface ModelOption {
  model: string
  price: string
  group: string
  /** It ends with a colon: the name of the model is still to be typed. */
  open: boolean
}

const FREE = 'Scripted, free'
const SHOWN = 60

/** Amounts are US dollars for a million tokens. */
const dollars = (amount: number): string => `$${Number(amount.toFixed(4))}`

export function priceOf(model: string, offers: readonly Offer[]): string {
  const [endpoint, name] = split(model)
  const offer = offers.find((each) => each.name === endpoint)
  if (offer && isScripted(offer)) return `${FREE}: it calls each tool that the prompt names`
  if (!offer) return endpointProblem(model, offers)
  const priced = offer.models.find((each) => each.name === name)
  const price = priced
    ? `${dollars(priced.input)} in, ${dollars(priced.output)} out per million tokens`
    : 'Its price is not known'
  return offer.ready ? price : `${price}. No key is set for ${offer.name}.`
}

/** Why the endpoint of a model cannot be asked; empty if it can, or is not typed yet. */
export function endpointProblem(model: string, offers: readonly Offer[]): string {
  const [endpoint, name] = split(model)
  const offer = offers.find((each) => each.name === endpoint)
  if (!offer) return model.includes('<') || !name ? '' : 'This server has no such endpoint.'
  return offer.ready ? '' : `No key is set for ${offer.name}.`
}

export function modelOptions(typed: string, offers: readonly Offer[], doc: Document): ModelOption[] {
  const used = Object.values(doc.blocks).flatMap((block) =>
    typeof block.params?.model === 'string' && /^\w+:[^<>]+$/.test(block.params.model) ? [block.params.model] : [],
  )
  const options: ModelOption[] = [...new Set(used)].map((model) => ({
    model,
    price: short(model, offers),
    group: 'In this workflow',
    open: false,
  }))
  for (const offer of offers) {
    const group = offer.ready ? `${offer.name}, ${offer.host}` : `${offer.name}, needs a key`
    const own = offer.models.map((each) => `${offer.name}:${each.name}`)
    const listed = isScripted(offer) ? [`${offer.name}:gpt-5-mini`] : own
    options.push(
      ...listed.map((model) => ({ model, price: short(model, offers), group, open: false })),
      ...(listed.length ? [] : [{ model: `${offer.name}:`, price: 'Type the name of a model', group, open: true }]),
    )
  }
  const fitting = typed.trim() ? ranked(options, typed) : options
  return fitting.filter((each, i) => fitting.findIndex((other) => other.model === each.model) === i).slice(0, SHOWN)
}

/** Known models of embeddings. Other endpoints have none, or the name of the model is typed. */
const EMBEDDINGS: Record<string, readonly string[]> = {
  dev: ['words'],
  openai: ['text-embedding-3-small', 'text-embedding-3-large'],
  anthropic: [],
}

export function embeddingOptions(typed: string, offers: readonly Offer[]): ModelOption[] {
  const options = offers.flatMap(({ name, host, ready }): ModelOption[] => {
    const group = ready ? `${name}, ${host}` : `${name}, needs a key`
    return (EMBEDDINGS[name] ?? ['']).map((model) => ({
      model: `${name}:${model}`,
      price: model ? '' : 'Type the name of a model',
      group,
      open: !model,
    }))
  })
  return typed.trim() ? ranked(options, typed) : options
}

/** Groups keep their order; in a group the best fit is first. */
function ranked(options: readonly ModelOption[], typed: string): ModelOption[] {
  const groups = [...new Set(options.map((each) => each.group))]
  return options
    .map((option) => ({ option, score: fuzzy(option.model, typed) }))
    .filter(({ score }) => score > 400)
    .sort((a, b) => groups.indexOf(a.option.group) - groups.indexOf(b.option.group) || b.score - a.score)
    .map(({ option }) => option)
}

function short(model: string, offers: readonly Offer[]): string {
  const [endpoint, name] = split(model)
  const offer = offers.find((each) => each.name === endpoint)
  if (offer && isScripted(offer)) return FREE
  const priced = offer?.models.find((each) => each.name === name)
  return priced ? `${dollars(priced.input)} in, ${dollars(priced.output)} out` : ''
}

/** `weft dev-model`, which `make serve` starts: a script on this machine, unless the operator gave it a price. */
const isScripted = (offer: Offer): boolean =>
  offer.name === 'dev' && !offer.models.length && /^(127\.|localhost$|::1$)/.test(offer.host)

function split(model: string): [string, string] {
  const at = model.indexOf(':')
  return at < 0 ? ['', model] : [model.slice(0, at).toLowerCase(), model.slice(at + 1)]
}
