"""stub"""
def register(): pass
