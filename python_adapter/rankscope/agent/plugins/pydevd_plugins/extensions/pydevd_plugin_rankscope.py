"""What debugpy finds in its plugin folder: how tensors, and what holds them, are shown. Loads no torch, no numpy."""

from _pydevd_bundle.pydevd_extension_api import StrPresentationProvider, TypeResolveProvider

from rankscope.agent.presentation import ArrayPresentation, HolderPresentation, PagePresentation, take_precedence

for provider in (ArrayPresentation, PagePresentation):
    StrPresentationProvider.register(provider)
    TypeResolveProvider.register(provider)
StrPresentationProvider.register(HolderPresentation)
take_precedence(__name__)
