/if scale > 1/d
