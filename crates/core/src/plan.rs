//! What a fleet needs: from a snapshot to a plan. Pure; the health controller carries it out.
