// Opening a workflow by its name.

import { api } from '../net/api'
import { toast } from '../ui/Toast'
import { messageOf } from '../ui/words'
import { navigate } from '../ui/navigation'

/** Go to the draft of this workflow, if there is one; else to a copy of its newest version, whose document may have another name. */
export async function openWorkflow(name: string): Promise<void> {
  try {
    const draft = (await api.drafts()).find((each) => each.base_name === name || each.name === name)
    if (draft) return navigate(`/w/${draft.id}`)
    const stored = await api.workflow(name)
    navigate(`/w/${(await api.createDraft({ ...stored.document, name }, name, stored.version)).id}`)
  } catch (error) {
    toast(messageOf(error), 'err')
  }
}
